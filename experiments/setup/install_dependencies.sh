#!/bin/bash
# Installs the Debian packages that building, testing and plotting need, where they are missing.
set -euo pipefail

# One a line, by what they are for.
packages=(
  # compilers and build tools
  build-essential cmake ninja-build pkg-config git clang llvm libclang-rt-dev
  # BPF: libbpf, the skeleton generator, headers
  libbpf-dev bpftool libelf-dev zlib1g-dev linux-libc-dev
  # what the command and its tests run
  iproute2 ethtool iputils-ping procps util-linux
  # C++ libraries
  libcli11-dev libfmt-dev nlohmann-json3-dev
  # tests and benchmarks
  libgtest-dev libgmock-dev libbenchmark-dev clang-format clang-tidy
  # figures
  python3 python3-matplotlib python3-pandas
)

usage() {
  cat <<'END'
Usage: install_dependencies.sh [--list | --help]
Installs the missing packages with apt-get (as root; Debian 12). --list prints all and does nothing.
END
}

case "${1-}" in
  '') ;;
  --list) printf '%s\n' "${packages[@]}"; exit 0 ;;
  --help | -h) usage; exit 0 ;;
  *) echo "install_dependencies.sh: $1: must be --list or --help" >&2; exit 2 ;;
esac

if ! command -v dpkg-query > /dev/null || ! command -v apt-get > /dev/null; then
  echo "install_dependencies.sh: this is no Debian. Install what corresponds to: ${packages[*]}" >&2
  exit 1
fi

missing=()
for package in "${packages[@]}"; do
  # The status of a package that was never heard of is an error, not a word.
  status=$(dpkg-query --show --showformat '${db:Status-Status}' "$package" 2> /dev/null || true)
  [[ $status == installed ]] || missing+=("$package")
done
[[ ${#missing[@]} -gt 0 ]] || exit 0

if [[ $(id -u) -ne 0 ]]; then
  echo "install_dependencies.sh: missing, and only root can install them: ${missing[*]}" >&2
  exit 1
fi
echo "Installing: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
apt-get update --quiet=2
apt-get install --yes --quiet=2 --no-install-recommends "${missing[@]}"
