// A plugin for mosquitto 2.0 or later, the vehicles' broker: it says what a client may do, by the client's name and the
// topic's, so that the broker's configuration is the same for any number of vehicles.
//
// A client's name is the common name of its certificate: "operator", or a role and its vehicle, as "rider:UUID". The
// topics of a vehicle begin with "vehicles/UUID/". These are the rules of `VehicleTopics` (Sources/Operator/Broker).
//
// What the plugin does not allow, acl_file in mosquitto.conf(5) decides: it has the vehicles that have other topics.

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <mosquitto.h>
#include <mosquitto_broker.h>
#include <mosquitto_plugin.h>

enum { READ = MOSQ_ACL_READ, WRITE = MOSQ_ACL_WRITE };

enum topic { AVAILABILITY, NOTICE, EVENTS, SET_POSITION, STATUS, TOPICS };

// The topics that a vehicle has once, as they are called after "vehicles/UUID/".
static const char *const once[] = {[AVAILABILITY] = "availability", [NOTICE] = "operator", [EVENTS] = "events"};

// The topics that each step has, as they are called after "vehicles/UUID/STEP/".
static const char *const of_step[TOPICS] = {[SET_POSITION] = "set_position", [STATUS] = "status"};

// Who may retain a message could fill the broker with topics that nobody reads.
static const bool is_retained[TOPICS] = {[AVAILABILITY] = true, [NOTICE] = true, [STATUS] = true};

static const struct role {
  const char *name;
  int rights[TOPICS];
} roles[] = {
  {"operator", {[AVAILABILITY] = READ, [NOTICE] = READ | WRITE, [EVENTS] = READ, [STATUS] = READ}},
  // It reads its own availability: the will of an old, replaced connection may come late.
  {"controller",
   {[AVAILABILITY] = READ | WRITE, [NOTICE] = READ, [EVENTS] = WRITE, [SET_POSITION] = READ, [STATUS] = WRITE}},
  {"rider", {[AVAILABILITY] = READ, [SET_POSITION] = WRITE, [STATUS] = READ}},
  {"watcher", {[AVAILABILITY] = READ, [STATUS] = READ}},
};

struct client {
  const struct role *role;
  // The UUID, where the client has one vehicle.
  const char *vehicle;
};

enum { UUID_LENGTH = 36, STEP_LENGTH = 32 };

static const char prefix[] = "vehicles/";
enum { PREFIX_LENGTH = sizeof prefix - 1 };

// Whether a text begins with a UUID as vehicles write it (RFC 9562, section 4, in lower case).
static bool begins_with_uuid(const char *text) {
  for (int i = 0; i < UUID_LENGTH; i++) {
    bool is_hyphen = i == 8 || i == 13 || i == 18 || i == 23;
    if (text[i] == '\0' || !strchr(is_hyphen ? "-" : "0123456789abcdef", text[i])) return false;
  }
  return true;
}

static bool find_client(const char *name, struct client *client) {
  for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
    size_t length = strlen(roles[i].name);
    if (strncmp(name, roles[i].name, length) != 0) continue;
    const char *rest = name + length;
    bool is_operator = i == 0;
    if (is_operator ? *rest != '\0' : *rest != ':' || !begins_with_uuid(rest + 1) || rest[1 + UUID_LENGTH] != '\0')
      continue;
    *client = (struct client){&roles[i], is_operator ? NULL : rest + 1};
    return true;
  }
  return false;
}

// The topic that is called so after "vehicles/UUID/"; TOPICS for none.
static enum topic find_topic(const char *name) {
  for (size_t i = 0; i < sizeof once / sizeof *once; i++) {
    if (strcmp(name, once[i]) == 0) return (enum topic)i;
  }
  size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_");
  if (length == 0 || length > STEP_LENGTH || name[length] != '/') return TOPICS;
  for (size_t i = SET_POSITION; i < TOPICS; i++) {
    if (strcmp(name + length + 1, of_step[i]) == 0) return (enum topic)i;
  }
  return TOPICS;
}

// Whether the client may send this message, or get it.
static bool may_use(const struct client *client, const char *topic, int access, bool is_retained_now) {
  if (strncmp(topic, prefix, PREFIX_LENGTH) != 0) return false;
  const char *vehicle = topic + PREFIX_LENGTH;
  if (!begins_with_uuid(vehicle) || vehicle[UUID_LENGTH] != '/') return false;
  if (client->vehicle && strncmp(vehicle, client->vehicle, UUID_LENGTH) != 0) return false;
  enum topic found = find_topic(vehicle + UUID_LENGTH + 1);
  if (found == TOPICS || (access == WRITE && is_retained_now && !is_retained[found])) return false;
  return (client->role->rights[found] & access) != 0;
}

// Whether a filter would make the broker look at the messages of all vehicles, each time. What a client gets of those is
// decided for each message, but one client could keep the broker busy.
static bool is_wide(const char *filter) {
  size_t first = strncmp(filter, prefix, PREFIX_LENGTH) == 0 ? PREFIX_LENGTH : 0;
  return filter[first] == '+' || filter[first] == '#' || filter[0] == '$';
}

static int check(int event, void *data, void *context) {
  (void)event, (void)context;
  const struct mosquitto_evt_acl_check *question = data;
  const char *name = mosquitto_client_username(question->client);
  struct client client;
  if (!name || !question->topic || !find_client(name, &client)) return MOSQ_ERR_PLUGIN_DEFER;
  switch (question->access) {
  case MOSQ_ACL_SUBSCRIBE:
    return client.vehicle && is_wide(question->topic) ? MOSQ_ERR_ACL_DENIED : MOSQ_ERR_PLUGIN_DEFER;
  case MOSQ_ACL_READ:
  case MOSQ_ACL_WRITE:
    return may_use(&client, question->topic, question->access, question->retain) ? MOSQ_ERR_SUCCESS
                                                                                  : MOSQ_ERR_PLUGIN_DEFER;
  default: return MOSQ_ERR_PLUGIN_DEFER;
  }
}

int mosquitto_plugin_version(int count, const int *versions) {
  for (int i = 0; i < count; i++) {
    if (versions[i] == MOSQ_PLUGIN_VERSION) return MOSQ_PLUGIN_VERSION;
  }
  return -1;
}

int mosquitto_plugin_init(mosquitto_plugin_id_t *plugin, void **data, struct mosquitto_opt *options, int count) {
  (void)data, (void)options, (void)count;
  return mosquitto_callback_register(plugin, MOSQ_EVT_ACL_CHECK, check, NULL, NULL);
}

int mosquitto_plugin_cleanup(void *data, struct mosquitto_opt *options, int count) {
  (void)data, (void)options, (void)count;
  return MOSQ_ERR_SUCCESS;
}
