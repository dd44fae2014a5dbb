#!/bin/bash
# Compiles protocol_user.c as one language: STANDARD SOURCE_DIR CC CXX CLANG.
set -eu
standard=$1 source=$2 cc=$3 cxx=$4 clang=$5
file=$source/tests/compile/protocol_user.c
warnings=(-Wall -Wextra -Wshadow -Werror)
case $standard in
  c11) "$cc" -std=c11 -pedantic -Wconversion -Wno-sign-conversion "${warnings[@]}" -O2 -I"$source" -c "$file" -o /dev/null ;;
  c++17 | c++20) "$cxx" -x c++ -std="$standard" -Wconversion -Wno-sign-conversion "${warnings[@]}" -O2 -I"$source" -c "$file" -o /dev/null ;;
  bpf) "$clang" -target bpf -mcpu=v3 "${warnings[@]}" -O2 -I"$source" -I"/usr/include/$(uname -m)-linux-gnu" -c "$file" -o /dev/null ;;
  *) echo "compile_protocol.sh: unknown standard $standard" >&2; exit 2 ;;
esac
