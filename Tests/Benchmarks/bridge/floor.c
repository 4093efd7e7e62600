/*
 * The floor for a bridge: plain C on libwebsockets, over mutual TLS, that passes each frame of a publisher on as it came.
 * It neither reads frames nor knows places; what `stepctl traffic serve` takes beyond this is its own.
 *
 *   floor PORT CA CERTIFICATE KEY
 *
 * Whoever connects to /publish/... publishes; everybody else gets the newest frame, once they have said something.
 *
 *   cc -O2 -o floor floor.c -lwebsockets
 */
#include <libwebsockets.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { LONGEST = 1 << 20 };

struct peer {
  struct peer *next;
  struct lws *socket;
  int publishes, has_spoken;
  unsigned long seen;
};

static struct peer *peers;
static unsigned char frame[LWS_PRE + LONGEST], part[LONGEST];
static size_t length, received;
static unsigned long number;

static int callback(struct lws *socket, enum lws_callback_reasons reason, void *user, void *in, size_t count) {
  struct peer *peer = user;
  char path[64];
  switch (reason) {
  case LWS_CALLBACK_OPENSSL_PERFORM_CLIENT_CERT_VERIFICATION:
    return count == 1 ? 0 : 1;
  case LWS_CALLBACK_FILTER_PROTOCOL_CONNECTION:
    memset(peer, 0, sizeof *peer);
    if (lws_hdr_copy(socket, path, sizeof path, WSI_TOKEN_GET_URI) > 0) peer->publishes = !strncmp(path, "/publish/", 9);
    break;
  case LWS_CALLBACK_ESTABLISHED: {
    int least = 16384;
    setsockopt(lws_get_socket_fd(socket), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &least, sizeof least);
    peer->socket = socket;
    peer->next = peers;
    peers = peer;
    break;
  }
  case LWS_CALLBACK_RECEIVE:
    if (!peer->publishes) {
      peer->has_spoken = 1;
      break;
    }
    if (received + count > LONGEST) return -1;
    memcpy(part + received, in, count);
    received += count;
    if (lws_remaining_packet_payload(socket) || !lws_is_final_fragment(socket)) break;
    memcpy(frame + LWS_PRE, part, received);
    length = received;
    received = 0;
    number++;
    for (struct peer *each = peers; each; each = each->next)
      if (each->has_spoken) lws_callback_on_writable(each->socket);
    break;
  case LWS_CALLBACK_SERVER_WRITEABLE:
    if (peer->seen == number) break;
    peer->seen = number;
    if (lws_write(socket, frame + LWS_PRE, length, LWS_WRITE_TEXT) < 0) return -1;
    break;
  case LWS_CALLBACK_CLOSED:
    for (struct peer **place = &peers; *place; place = &(*place)->next)
      if (*place == peer) {
        *place = peer->next;
        break;
      }
    break;
  default:
    break;
  }
  return 0;
}

int main(int count, char **words) {
  if (count != 5) return 64;
  lws_set_log_level(0, NULL);
  struct lws_protocols protocols[] = {{"feed", callback, sizeof(struct peer), 4096, 0, NULL, 0}, {0}};
  struct lws_context_creation_info info = {0};
  info.port = atoi(words[1]);
  info.iface = "127.0.0.1";
  info.protocols = protocols;
  info.options = LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT | LWS_SERVER_OPTION_REQUIRE_VALID_OPENSSL_CLIENT_CERT;
  info.alpn = "http/1.1";
  info.fd_limit_per_thread = 4096;
  info.ssl_ca_filepath = words[2];
  info.ssl_cert_filepath = words[3];
  info.ssl_private_key_filepath = words[4];
  struct lws_context *context = lws_create_context(&info);
  if (!context) return 1;
  while (lws_service(context, 0) >= 0) {}
  return 0;
}
