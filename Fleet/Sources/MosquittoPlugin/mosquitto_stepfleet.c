// A plugin for mosquitto 2.0 or later, the vehicles' broker: it says what a client may do, by the client's name and the
// topic's, so that the broker's configuration is the same for any number of vehicles.
//
// A client's name is the common name of its certificate: "operator", or a role and its vehicle, as "rider:UUID". The
// topics of a vehicle begin with "vehicles/UUID/", and its steps are "left" and "right". These are the rules of
// `VehicleTopics` (Sources/Operator/Broker).
//
// What the plugin does not allow, acl_file in mosquitto.conf(5) decides: it has the vehicles with other topics or steps.
// The option "removed" names a file with the UUIDs of vehicles that were removed: their clients may do nothing.

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <mosquitto.h>
#include <mosquitto_broker.h>
#include <mosquitto_plugin.h>

enum { READ = MOSQ_ACL_READ, WRITE = MOSQ_ACL_WRITE };

enum topic { AVAILABILITY, NOTICE, EVENTS, SET_POSITION, STATUS, TOPICS };

// The topics that a vehicle has once, as they are called after "vehicles/UUID/".
static const char *const once[] = {[AVAILABILITY] = "availability", [NOTICE] = "operator", [EVENTS] = "events"};

// The topics that each step has, as they are called after "vehicles/UUID/STEP/".
static const char *const of_step[TOPICS] = {[SET_POSITION] = "set_position", [STATUS] = "status"};

// The steps that a vehicle has unless somebody chooses others. With any names, one vehicle could fill the broker.
static const char *const steps[] = {"left/", "right/"};

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

enum { UUID_LENGTH = 36 };

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
  for (size_t step = 0; step < sizeof steps / sizeof *steps; step++) {
    size_t length = strlen(steps[step]);
    if (strncmp(name, steps[step], length) != 0) continue;
    for (size_t i = SET_POSITION; i < TOPICS; i++) {
      if (strcmp(name + length, of_step[i]) == 0) return (enum topic)i;
    }
  }
  return TOPICS;
}

// Whether the client may send or get a message.
static bool may_use(const struct client *client, const char *topic, int access) {
  if (strncmp(topic, prefix, PREFIX_LENGTH) != 0) return false;
  const char *vehicle = topic + PREFIX_LENGTH;
  if (!begins_with_uuid(vehicle) || vehicle[UUID_LENGTH] != '/') return false;
  if (client->vehicle && strncmp(vehicle, client->vehicle, UUID_LENGTH) != 0) return false;
  enum topic found = find_topic(vehicle + UUID_LENGTH + 1);
  return found != TOPICS && (client->role->rights[found] & access) != 0;
}

// Whether a topic is one whose messages no broker has to retain. Whoever could do that could fill the broker.
static bool is_passing(const char *topic) {
  const char *last = strrchr(topic, '/');
  last = last ? last + 1 : topic;
  return strcmp(last, of_step[SET_POSITION]) == 0 || strcmp(last, once[EVENTS]) == 0;
}

// Whether a filter would make the broker look at messages of other vehicles. What a client gets of those is decided for
// each message, but one client could keep the broker busy.
static bool is_wide(const char *filter, const char *vehicle) {
  if (strncmp(filter, prefix, PREFIX_LENGTH) != 0) return filter[0] == '+' || filter[0] == '#' || filter[0] == '$';
  const char *first = filter + PREFIX_LENGTH;
  if (*first == '+' || *first == '#') return true;
  return begins_with_uuid(first) && strncmp(first, vehicle, UUID_LENGTH) != 0;
}

// The removed vehicles: lines of a UUID each, in their order.
static struct {
  char *path, *lines;
  size_t count;
  struct stat file;
  time_t looked;
} removed;

enum { LINE_LENGTH = UUID_LENGTH + 1 };

static int compare(const void *one, const void *other) { return memcmp(one, other, LINE_LENGTH); }

// Reads the file, which is replaced as a whole. Returns false, and changes nothing, if it is not in order.
static bool read_removed(int file, size_t size) {
  if (size % LINE_LENGTH != 0) return false;
  char *lines = malloc(size + 1);
  if (!lines) return false;
  size_t count = size / LINE_LENGTH;
  bool is_in_order = read(file, lines, size) == (ssize_t)size;
  lines[size] = '\0';
  for (size_t i = 0; is_in_order && i < count; i++) {
    const char *line = lines + i * LINE_LENGTH;
    is_in_order = begins_with_uuid(line) && line[UUID_LENGTH] == '\n' && (i == 0 || compare(line - LINE_LENGTH, line) < 0);
  }
  if (!is_in_order) {
    free(lines);
    return false;
  }
  free(removed.lines);
  removed.lines = lines, removed.count = count;
  return true;
}

// Looks once a second whether the file is another one. If it cannot be read, what was read before counts.
static void look_for_removed(void) {
  time_t now = time(NULL);
  if (!removed.path || now == removed.looked) return;
  removed.looked = now;
  struct stat status;
  int file = open(removed.path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  bool is_read = file >= 0 && fstat(file, &status) == 0 && S_ISREG(status.st_mode);
  if (is_read && (status.st_ino != removed.file.st_ino || status.st_mtim.tv_sec != removed.file.st_mtim.tv_sec ||
                  status.st_mtim.tv_nsec != removed.file.st_mtim.tv_nsec || status.st_size != removed.file.st_size)) {
    is_read = read_removed(file, (size_t)status.st_size);
    // What is wrong is said once.
    removed.file = status;
    if (!is_read) mosquitto_log_printf(MOSQ_LOG_ERR, "stepfleet: %s is damaged", removed.path);
  } else if (!is_read && removed.file.st_ino != 0) {
    memset(&removed.file, 0, sizeof removed.file);
    mosquitto_log_printf(MOSQ_LOG_ERR, "stepfleet: %s cannot be read", removed.path);
  }
  if (file >= 0) close(file);
}

static bool is_removed(const char *vehicle) {
  char line[LINE_LENGTH];
  memcpy(line, vehicle, UUID_LENGTH);
  line[UUID_LENGTH] = '\n';
  return removed.count > 0 && bsearch(line, removed.lines, removed.count, LINE_LENGTH, compare);
}

static int check(int event, void *data, void *context) {
  (void)event, (void)context;
  const struct mosquitto_evt_acl_check *question = data;
  const char *name = mosquitto_client_username(question->client);
  struct client client;
  if (!name || !question->topic || !find_client(name, &client)) return MOSQ_ERR_PLUGIN_DEFER;
  look_for_removed();
  if (client.vehicle && is_removed(client.vehicle)) return MOSQ_ERR_ACL_DENIED;
  switch (question->access) {
  case MOSQ_ACL_SUBSCRIBE:
    return client.vehicle && is_wide(question->topic, client.vehicle) ? MOSQ_ERR_ACL_DENIED : MOSQ_ERR_PLUGIN_DEFER;
  case MOSQ_ACL_WRITE:
    if (question->retain && is_passing(question->topic)) return MOSQ_ERR_ACL_DENIED;
    // fall through
  case MOSQ_ACL_READ:
    return may_use(&client, question->topic, question->access) ? MOSQ_ERR_SUCCESS : MOSQ_ERR_PLUGIN_DEFER;
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
  (void)data;
  for (int i = 0; i < count; i++) {
    if (strcmp(options[i].key, "removed") != 0) continue;
    free(removed.path);
    removed.path = strdup(options[i].value);
    if (!removed.path) return MOSQ_ERR_NOMEM;
  }
  look_for_removed();
  return mosquitto_callback_register(plugin, MOSQ_EVT_ACL_CHECK, check, NULL, NULL);
}

int mosquitto_plugin_cleanup(void *data, struct mosquitto_opt *options, int count) {
  (void)data, (void)options, (void)count;
  free(removed.path);
  free(removed.lines);
  memset(&removed, 0, sizeof removed);
  return MOSQ_ERR_SUCCESS;
}
