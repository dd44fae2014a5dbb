# Writes version.h when the commit has changed; run at every build, as a checkout moves without CMake.
execute_process(
  COMMAND git -c safe.directory=* -C ${SOURCE_DIR} describe --always --dirty --abbrev=7 --exclude=*
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT commit)
  set(commit "unknown commit")
endif()
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT [[
// Generated: which version and commit this is.
#pragma once
#define ERAR_VERSION "@VERSION@"
#define ERAR_COMMIT "@commit@"
]])
