/*
 * Many clients of a bridge in one process, and how late its frames come to them: plain C on libwebsockets.
 *
 *   clients PORT CA CERTIFICATE KEY COUNT STALLED SECONDS
 *
 * connects COUNT clients, of which STALLED do not read, to wss://localhost:PORT/traffic. Each says where it is once a
 * second. When all are connected, it says `connected` and, for every frame of the SECONDS after the first one, counts the
 * time from the frame's stamp until it came whole. At the end it prints the number of frames, how many clients got one,
 * and the delays in milliseconds: p50, p99, the longest, and the longest p99 of one client.
 *
 *   cc -O2 -o clients clients.c -lwebsockets
 */
#include <libwebsockets.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct client {
  struct lws *socket;
  int stalls;
  char head[256];
  size_t length;
  double *delays;
  size_t count, room;
};

static struct client *clients;
static int wanted, connected, failed;
static double begin, seconds;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* A member whose value is a text or a number. */
static double number(const char *text, const char *name) {
  const char *place = strstr(text, name);
  if (!place) return 0;
  place += strlen(name);
  while (*place && !(*place >= '0' && *place <= '9')) place++;
  return atof(place);
}

static int callback(struct lws *socket, enum lws_callback_reasons reason, void *user, void *in, size_t count) {
  struct client *client = lws_get_opaque_user_data(socket);
  (void)user;
  switch (reason) {
  case LWS_CALLBACK_CLIENT_CONNECTION_ERROR:
    failed++;
    break;
  case LWS_CALLBACK_CLIENT_ESTABLISHED:
    connected++;
    client->socket = socket;
    lws_callback_on_writable(socket);
    break;
  case LWS_CALLBACK_TIMER:
    lws_callback_on_writable(socket);
    break;
  case LWS_CALLBACK_CLIENT_WRITEABLE: {
    unsigned char text[LWS_PRE + 256];
    int length = snprintf((char *)text + LWS_PRE, 256,
                          "{\"timestamp\":%.6f,\"locationAccuracy\":5,\"course\":-1,\"speed\":-1,\"speedAccuracy\":-1,"
                          "\"longitude\":9.1829,\"latitude\":48.7758}",
                          now());
    lws_set_timer_usecs(socket, 1000000);
    if (lws_write(socket, text + LWS_PRE, (size_t)length, LWS_WRITE_TEXT) < 0) return -1;
    if (client->stalls) lws_rx_flow_control(socket, 0);
    break;
  }
  case LWS_CALLBACK_CLIENT_RECEIVE:
    if (client->length + 1 < sizeof client->head) {
      size_t part = count < sizeof client->head - 1 - client->length ? count : sizeof client->head - 1 - client->length;
      memcpy(client->head + client->length, in, part);
      client->length += part;
      client->head[client->length] = 0;
    }
    if (lws_remaining_packet_payload(socket) || !lws_is_final_fragment(socket)) break;
    client->length = 0;
    if (!begin || now() < begin) break;
    if (client->count == client->room)
      client->delays = realloc(client->delays, sizeof(double) * (client->room = client->room * 2 + 256));
    client->delays[client->count++] =
        now() - number(client->head, "\"timestampSecs\"") - number(client->head, "\"timestampNsecs\"") / 1e9;
    break;
  default:
    break;
  }
  return 0;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

static double quantile(double *values, size_t count, double part) {
  return count ? values[(size_t)(part * (double)(count - 1))] * 1000 : 0;
}

int main(int count, char **words) {
  if (count != 8) return 64;
  wanted = atoi(words[5]);
  int stalled = atoi(words[6]);
  seconds = atof(words[7]);
  lws_set_log_level(0, NULL);
  struct lws_protocols protocols[] = {{"feed", callback, 0, 65536, 0, NULL, 0}, {0}};
  struct lws_context_creation_info info = {0};
  info.port = CONTEXT_PORT_NO_LISTEN;
  info.protocols = protocols;
  info.options = LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT;
  info.client_ssl_ca_filepath = words[2];
  info.client_ssl_cert_filepath = words[3];
  info.client_ssl_private_key_filepath = words[4];
  struct lws_context *context = lws_create_context(&info);
  if (!context) return 1;
  clients = calloc((size_t)wanted, sizeof *clients);
  for (int index = 0; index < wanted; index++) {
    struct lws_client_connect_info to = {0};
    clients[index].stalls = index < stalled;
    to.context = context;
    to.address = to.host = "localhost";
    to.port = atoi(words[1]);
    to.path = "/traffic";
    to.ssl_connection = LCCSCF_USE_SSL;
    to.local_protocol_name = "feed";
    to.opaque_user_data = &clients[index];
    if (!lws_client_connect_via_info(&to)) failed++;
    /* Not all handshakes at once. */
    double end = now() + 10;
    while (connected + failed <= index && now() < end) lws_service(context, 0);
  }
  printf("connected %d\n", connected);
  fflush(stdout);
  begin = now() + 1;
  while (now() < begin + seconds) lws_service(context, 0);
  size_t all = 0, served = 0;
  double worst = 0, *delays = NULL;
  for (int index = 0; index < wanted; index++) {
    struct client *client = &clients[index];
    if (!client->count) continue;
    served++;
    qsort(client->delays, client->count, sizeof(double), compare);
    double own = quantile(client->delays, client->count, 0.99);
    if (!client->stalls && own > worst) worst = own;
    delays = realloc(delays, sizeof(double) * (all + client->count));
    memcpy(delays + all, client->delays, sizeof(double) * client->count);
    all += client->count;
  }
  qsort(delays, all, sizeof(double), compare);
  printf("{\"frames\": %zu, \"served\": %zu, \"p50_ms\": %.3f, \"p99_ms\": %.3f, \"max_ms\": %.3f, \"worst_p99_ms\": %.3f}\n",
         all, served, quantile(delays, all, 0.5), quantile(delays, all, 0.99), quantile(delays, all, 1), worst);
  return 0;
}
