# shellcheck shell=sh
# To be sourced in the project's folder before programs for use are built: exports what they say of themselves
# (Sources/Libraries/CBuild), unless it is known already. SWIFT_EXEC is the compiler, if it is another than swiftc.
if [ -z "${STEPCTL_COMMIT-}" ]; then
  STEPCTL_COMMIT=$(git rev-parse --short=12 HEAD 2>/dev/null || true)
  STEPCTL_COMMIT_TIME=$(git log -1 --format=%ct 2>/dev/null || true)
  # As Mercurial says that there is more here than the commit.
  if [ -n "$(git status --porcelain 2>/dev/null || true)" ]; then STEPCTL_COMMIT=$STEPCTL_COMMIT+; fi
fi
STEPCTL_SWIFT=$("${SWIFT_EXEC:-swiftc}" --version 2>/dev/null | sed -n 's/.*Swift version \([0-9.]*\).*/\1/p')
export STEPCTL_COMMIT STEPCTL_COMMIT_TIME STEPCTL_SWIFT
