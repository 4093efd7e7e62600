#include <libwebsockets.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

// Macros that Swift does not import.
static inline size_t space_before_payload(void) { return LWS_PRE; }
// TLS that checks the certificate's chain, name and time, and allows nothing else. A redirection could lead to http.
static inline int use_tls(void) { return LCCSCF_USE_SSL | LCCSCF_HTTP_NO_FOLLOW_REDIRECT; }
// Mutual TLS: the handshake fails without a certificate from a trusted authority.
static inline uint64_t serve_mutual_tls(void) {
  return LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT | LWS_SERVER_OPTION_REQUIRE_VALID_OPENSSL_CLIENT_CERT |
         LWS_SERVER_OPTION_FAIL_UPON_UNABLE_TO_BIND;
}
static inline long no_old_tls(void) { return SSL_OP_NO_TLSv1 | SSL_OP_NO_TLSv1_1 | SSL_OP_NO_RENEGOTIATION; }

// What is wrong with the peer's certificate; NULL if nothing is, or if there is no certificate.
static inline const char *certificate_problem(struct lws *wsi) {
  SSL *tls = wsi ? (SSL *)lws_get_ssl(wsi) : NULL;
  long problem = tls ? SSL_get_verify_result(tls) : X509_V_OK;
  return problem == X509_V_OK ? NULL : X509_verify_cert_error_string(problem);
}

// Checks a certificate during verification: the server's name must be a subjectAltName. A common name does not count
// (RFC 9525 2.2), although OpenSSL would accept it.
static inline int is_for_host(void *verification, const char *host) {
  X509_STORE_CTX *check = (X509_STORE_CTX *)verification;
  X509 *certificate = X509_STORE_CTX_get_current_cert(check);
  if (X509_STORE_CTX_get_error_depth(check) > 0) return 1;
  unsigned int how = X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS;
  if (certificate && (X509_check_host(certificate, host, 0, how, NULL) == 1 || X509_check_ip_asc(certificate, host, 0) == 1))
    return 1;
  X509_STORE_CTX_set_error(check, X509_V_ERR_HOSTNAME_MISMATCH);
  return 0;
}

// The only common name in the peer's certificate, as UTF-8. Returns its length, or -1 if there is no verified
// certificate, or not exactly one such name. lws_tls_peer_cert_info searches for "/CN=" in a line with the whole
// subject, and so also finds it inside another part of the subject.
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

// Each connection must present its certificate: a resumed session would not be checked again.
static inline void keep_no_sessions(SSL_CTX *settings) {
  SSL_CTX_set_options(settings, SSL_OP_NO_TICKET);
  SSL_CTX_set_num_tickets(settings, 0);
  SSL_CTX_set_session_cache_mode(settings, SSL_SESS_CACHE_OFF);
}

// From now on a certificate must not be on its authority's revocation list (RFC 5280 5). That list must be among these
// lists (PEM) and must be current. Returns the number of lists. If it is 0, a list cannot be read, and nothing changes.
static inline int take_revocation_lists(SSL_CTX *settings, const void *pem, int length) {
  X509_STORE *store = X509_STORE_new();
  BIO *text = BIO_new_mem_buf(pem, length);
  if (!store || !text) abort();
  STACK_OF(X509_OBJECT) *known = X509_STORE_get0_objects(SSL_CTX_get_cert_store(settings));
  for (int place = 0; place < sk_X509_OBJECT_num(known); place++) {
    X509 *authority = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(known, place));
    if (authority) X509_STORE_add_cert(store, authority);
  }
  int count = 0;
  ERR_clear_error();
  for (X509_CRL *list; (list = PEM_read_bio_X509_CRL(text, NULL, NULL, NULL)); count++) {
    X509_STORE_add_crl(store, list);
    X509_CRL_free(list);
  }
  if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE) count = 0;
  ERR_clear_error();
  BIO_free(text);
  if (count > 0) {
    X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK);
    SSL_CTX_set_cert_store(settings, store);
  } else {
    X509_STORE_free(store);
  }
  return count;
}

// Whether the peer's certificate is valid by the present authorities and lists.
static inline int has_good_certificate(struct lws *wsi) {
  SSL *tls = (SSL *)lws_get_ssl(wsi);
  X509 *certificate = tls ? SSL_get1_peer_certificate(tls) : NULL;
  X509_STORE_CTX *check = X509_STORE_CTX_new();
  int is_good = certificate && check &&
                X509_STORE_CTX_init(check, SSL_CTX_get_cert_store(SSL_get_SSL_CTX(tls)), certificate,
                                    SSL_get_peer_cert_chain(tls)) == 1 &&
                X509_STORE_CTX_set_purpose(check, X509_PURPOSE_SSL_CLIENT) == 1 && X509_verify_cert(check) == 1;
  X509_STORE_CTX_free(check);
  X509_free(certificate);
  ERR_clear_error();
  return is_good;
}

// Whether the library has passed everything to the kernel, and the kernel has sent it.
static inline int has_sent_all(struct lws *wsi) {
  int unsent = 0;
  return !lws_partial_buffered(wsi) && !ioctl(lws_get_socket_fd(wsi), SIOCOUTQNSD, &unsent) && !unsent;
}

// All bytes received on a connection, before the library processes them; 0 if the kernel does not report it.
static inline uint64_t bytes_received(struct lws *wsi) {
  // glibc's structure is shorter than the kernel's (linux/tcp.h, which cannot be included beside it).
  struct {
    struct tcp_info known;
    uint64_t pacing_rate, most_pacing_rate, acknowledged, received;
  } info = {0};
  socklen_t size = sizeof info;
  return getsockopt(lws_get_socket_fd(wsi), IPPROTO_TCP, TCP_INFO, &info, &size) ? 0 : info.received;
}

// Unsent data waits here, where newer data can replace it, and not in the kernel (tcp(7)).
static inline void keep_little_unsent(struct lws *wsi, int bytes) {
  (void)setsockopt(lws_get_socket_fd(wsi), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, sizeof bytes);
}
