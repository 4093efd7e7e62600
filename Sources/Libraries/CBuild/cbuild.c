#include "cbuild.h"

const char *cbuild_commit(void) {
#ifdef STEPCTL_COMMIT
  return STEPCTL_COMMIT;
#else
  return 0;
#endif
}
