#include <libwebsockets.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <string.h>
#include <sys/socket.h>

// Macros that Swift does not import.
static inline size_t space_before_payload(void) { return LWS_PRE; }
// TLS, and the certificate's chain, name and time checked: nothing more is allowed. A redirection could lead to http.
static inline int use_tls(void) { return LCCSCF_USE_SSL | LCCSCF_HTTP_NO_FOLLOW_REDIRECT; }
// Mutual TLS: without a certificate that an authority vouches for, the handshake fails.
static inline uint64_t serve_mutual_tls(void) {
  return LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT | LWS_SERVER_OPTION_REQUIRE_VALID_OPENSSL_CLIENT_CERT |
         LWS_SERVER_OPTION_FAIL_UPON_UNABLE_TO_BIND;
}
static inline long no_old_tls(void) { return SSL_OP_NO_TLSv1 | SSL_OP_NO_TLSv1_1 | SSL_OP_NO_RENEGOTIATION; }

// The one common name of the certificate that the other side has shown, as UTF-8: its length, or -1 where there is no
// certificate that was verified, or no such name. lws_tls_peer_cert_info looks for "/CN=" in a line that holds the whole
// subject, and so finds what another of its parts may say.
static inline int peer_name(struct lws *wsi, char *name, int size) {
  SSL *tls = (SSL *)lws_get_ssl(wsi);
  X509 *certificate = tls && SSL_get_verify_result(tls) == X509_V_OK ? SSL_get1_peer_certificate(tls) : NULL;
  if (!certificate) return -1;
  X509_NAME *subject = X509_get_subject_name(certificate);
  int place = X509_NAME_get_index_by_NID(subject, NID_commonName, -1), length = -1;
  if (place >= 0 && X509_NAME_get_index_by_NID(subject, NID_commonName, place) < 0) {
    unsigned char *text = NULL;
    length = ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, place)));
    if (length > size)
      length = -1;
    else if (length > 0)
      memcpy(name, text, (size_t)length);
    OPENSSL_free(text);
  }
  X509_free(certificate);
  return length;
}

// What has not gone yet is kept where it can be replaced by something newer, and not by the kernel (tcp(7)).
static inline void keep_little_unsent(struct lws *wsi, int bytes) {
  (void)setsockopt(lws_get_socket_fd(wsi), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, sizeof bytes);
}
