/*
 * The floor for a cold `stepctl open`: the same MQTT exchange in plain C on libmosquitto, without the protocol's
 * cryptography. What stepctl takes beyond this is its own.
 *
 *   floor HOST PORT CA CERTIFICATE KEY PUBLISH SUBSCRIBE
 *
 * connects with mutual TLS, subscribes to the topic SUBSCRIBE, publishes a request to PUBLISH and waits for its
 * answer, publishes a command and waits for its two answers (`moving`, then `idle`), and exits with 0; with 1 after
 * ten seconds or any error. With an eighth argument it plays the other side, until it is killed:
 *
 *   floor HOST PORT CA CERTIFICATE KEY PUBLISH SUBSCRIBE controller
 *
 * answers a request once and a command twice. A CA of `-` is a connection in the clear.
 *
 * Like stepctl it sends CONNECT, SUBSCRIBE and the request without waiting for CONNACK, sets TCP_NODELAY, and has
 * TCP_QUICKACK set again after each read. The broker should have `set_tcp_nodelay true`.
 *
 *   cc -O2 -o floor floor.c -lmosquitto
 */
#include <mosquitto.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum { request_size = 700, answer_size = 600, patience_s = 10 };
enum kind { request = 'r', command = 'c', answer = 'a', moving = 'm', idle = 'i' };

static const char *publish_topic;
static bool is_controller;
/* What arrived and was not looked at yet: libmosquitto is not to be called inside a callback. */
static char arrived[64];
static size_t arrived_count;

static void check(int code, const char *what)
{
	if (code == MOSQ_ERR_SUCCESS) return;
	fprintf(stderr, "floor: %s: %s\n", what, mosquitto_strerror(code));
	exit(1);
}

static void on_connect(struct mosquitto *client, void *context, int code)
{
	(void)client, (void)context;
	if (code == 0) return;
	fprintf(stderr, "floor: refused: %s\n", mosquitto_connack_string(code));
	exit(1);
}

static void on_message(struct mosquitto *client, void *context, const struct mosquitto_message *message)
{
	(void)client, (void)context;
	if (message->payloadlen > 0 && arrived_count < sizeof arrived)
		arrived[arrived_count++] = *(const char *)message->payload;
}

static void publish(struct mosquitto *client, enum kind kind, int size)
{
	char payload[request_size];
	memset(payload, kind, sizeof payload);
	check(mosquitto_publish(client, NULL, publish_topic, size, payload, 1, false), "publish");
}

/* Takes one message into account; true once the exchange is over. */
static bool handle(struct mosquitto *client, char kind)
{
	switch (kind) {
	case request: if (is_controller) publish(client, answer, answer_size); return false;
	case command:
		if (is_controller) publish(client, moving, answer_size), publish(client, idle, answer_size);
		return false;
	case answer: publish(client, command, request_size); return false;
	case idle: return !is_controller;
	default: return false;
	}
}

int main(int count, char **arguments)
{
	if (count < 8 || count > 9) {
		fputs("usage: floor HOST PORT CA CERTIFICATE KEY PUBLISH SUBSCRIBE [controller]\n", stderr);
		return 64;
	}
	const char *ca = arguments[3];
	publish_topic = arguments[6];
	is_controller = count == 9;

	mosquitto_lib_init();
	struct mosquitto *client = mosquitto_new(NULL, true, NULL);
	if (!client) check(MOSQ_ERR_NOMEM, "create a client");
	mosquitto_connect_callback_set(client, on_connect);
	mosquitto_message_callback_set(client, on_message);
	mosquitto_int_option(client, MOSQ_OPT_TCP_NODELAY, 1);
	if (strcmp(ca, "-") != 0)
		check(mosquitto_tls_set(client, ca, NULL, arguments[4], arguments[5], NULL), "set the certificates");
	check(mosquitto_connect(client, arguments[1], atoi(arguments[2]), 60), "connect");
	check(mosquitto_subscribe(client, NULL, arguments[7], 1), "subscribe");
	if (!is_controller) publish(client, request, request_size);

	for (time_t begin = time(NULL); is_controller || time(NULL) - begin < patience_s;) {
		check(mosquitto_loop(client, 1000, 1), "loop");
		int on = 1;
		setsockopt(mosquitto_socket(client), IPPROTO_TCP, TCP_QUICKACK, &on, sizeof on);
		for (size_t i = 0; i < arrived_count; i++) {
			if (!handle(client, arrived[i])) continue;
			mosquitto_disconnect(client);
			return 0;
		}
		arrived_count = 0;
	}
	fputs("floor: no answer\n", stderr);
	return 1;
}
