#include <libwebsockets.h>

// Macros that Swift does not import.
static inline size_t space_before_payload(void) { return LWS_PRE; }
// TLS, and the certificate's chain, name and time checked: nothing more is allowed. A redirection could lead to http.
static inline int use_tls(void) { return LCCSCF_USE_SSL | LCCSCF_HTTP_NO_FOLLOW_REDIRECT; }
