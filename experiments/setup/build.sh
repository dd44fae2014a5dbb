#!/bin/bash
# Configures and builds one of the presets of CMakePresets.json; build/ with no argument.
set -euo pipefail
cd "$(dirname "$0")/../.."

usage() {
  cat <<'END'
Usage: build.sh [PRESET [TARGET...]]
PRESET is release (into build/, the default), asan-ubsan (build-asan/), fuzz (build-fuzz/) or dev
(build-dev/). Without a TARGET everything is built.
END
}

preset=${1-release}
case "$preset" in
  release) folder=build ;;
  asan-ubsan) folder=build-asan ;;
  fuzz) folder=build-fuzz ;;
  dev) folder=build-dev ;;
  --help | -h) usage; exit 0 ;;
  *) echo "build.sh: $preset: must be release, asan-ubsan, fuzz or dev" >&2; exit 2 ;;
esac

# A folder that was configured keeps its generator: CMake refuses another.
generator=(-G Ninja)
[[ ! -e $folder/CMakeCache.txt ]] || generator=()
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! cmake --preset "$preset" "${generator[@]}" > "$log" 2>&1; then
  cat "$log" >&2
  exit 1
fi
shift $(($# > 0 ? 1 : 0))
cmake --build "$folder" --parallel "$(nproc)" ${1:+--target "$@"}
