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
// TLS, and the certificate's chain, name and time checked: nothing more is allowed. A redirection could lead to http.
static inline int use_tls(void) { return LCCSCF_USE_SSL | LCCSCF_HTTP_NO_FOLLOW_REDIRECT; }
// Mutual TLS: without a certificate that an authority vouches for, the handshake fails.
static inline uint64_t serve_mutual_tls(void) {
  return LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT | LWS_SERVER_OPTION_REQUIRE_VALID_OPENSSL_CLIENT_CERT |
         LWS_SERVER_OPTION_FAIL_UPON_UNABLE_TO_BIND;
}
static inline long no_old_tls(void) { return SSL_OP_NO_TLSv1 | SSL_OP_NO_TLSv1_1 | SSL_OP_NO_RENEGOTIATION; }

// What is wrong with the certificate that the other side has shown; NULL where nothing is, or where there is none.
static inline const char *certificate_problem(struct lws *wsi) {
  SSL *tls = wsi ? (SSL *)lws_get_ssl(wsi) : NULL;
  long problem = tls ? SSL_get_verify_result(tls) : X509_V_OK;
  return problem == X509_V_OK ? NULL : X509_verify_cert_error_string(problem);
}

// Looks at a certificate that is being verified: that of the server has to have its name as a subjectAltName. A common
// name is none (RFC 9525 2.2), though OpenSSL takes it.
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

// Each connection shows its certificate: one that goes on with an earlier session would not be looked at again.
static inline void keep_no_sessions(SSL_CTX *settings) {
  SSL_CTX_set_options(settings, SSL_OP_NO_TICKET);
  SSL_CTX_set_num_tickets(settings, 0);
  SSL_CTX_set_session_cache_mode(settings, SSL_SESS_CACHE_OFF);
}

// From now on a certificate has to be missing in the list of its authority (RFC 5280 5), which has to be among these, as
// PEM, and in force. How many lists there are: 0 where one cannot be read, and then nothing changes.
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

// Whether the certificate that the other side has shown is good by what counts now.
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

// Whether the kernel has sent all that it was given, and the library has given it all.
static inline int has_sent_all(struct lws *wsi) {
  int unsent = 0;
  return !lws_partial_buffered(wsi) && !ioctl(lws_get_socket_fd(wsi), SIOCOUTQNSD, &unsent) && !unsent;
}

// All that has come over a connection, whatever the library made of it; 0 where the kernel does not say.
static inline uint64_t bytes_received(struct lws *wsi) {
  // glibc's ends before the kernel's does (linux/tcp.h, which cannot be included beside it).
  struct {
    struct tcp_info known;
    uint64_t pacing_rate, most_pacing_rate, acknowledged, received;
  } info = {0};
  socklen_t size = sizeof info;
  return getsockopt(lws_get_socket_fd(wsi), IPPROTO_TCP, TCP_INFO, &info, &size) ? 0 : info.received;
}

// What has not gone yet is kept where it can be replaced by something newer, and not by the kernel (tcp(7)).
static inline void keep_little_unsent(struct lws *wsi, int bytes) {
  (void)setsockopt(lws_get_socket_fd(wsi), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, sizeof bytes);
}
