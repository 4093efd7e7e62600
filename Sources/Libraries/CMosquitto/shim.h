#include <mosquitto.h>

// libmosquitto uses OpenSSL for TLS, and accepts a context that its caller made (MOSQ_OPT_SSL_CTX).
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
