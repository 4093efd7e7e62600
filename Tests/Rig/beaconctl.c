// A Bluetooth LE controller that plays a scenario. It speaks HCI over H4, to a kernel through /dev/vhci, or on a socket
// to one host after the other.
//
//   beaconctl vhci|unix:PATH SCENARIO [--bt4] [--bundle N] [--ready FILE] [--log FILE]
//
//   --bt4     a controller of Bluetooth 4.2, which knows no extended commands
//   --bundle  reports in an event (1)
//   --ready   a file that is written when hosts may come, with the adapter's name
//   --log     a file for the commands that arrive
//
// A line of a scenario is an advertiser; `#` begins a comment:
//
//   ibeacon ADDRESS pub|rnd INTERVAL_MS UUID MAJOR MINOR MEASURED_POWER RSSI [FROM_S UNTIL_S]
//   raw     ADDRESS pub|rnd INTERVAL_MS EVENT_TYPE DATA|- RSSI [FROM_S UNTIL_S]
//
//   EVENT_TYPE  as in a legacy report: 0 ADV_IND, 1 ADV_DIRECT_IND, 2 ADV_SCAN_IND, 3 ADV_NONCONN_IND, 4 SCAN_RSP
//   RSSI        -60 | ramp:FROM:TO:SECONDS | sine:MEAN:AMPLITUDE:PERIOD_S | list:A,B,… | noise:MEAN:SPREAD (127: none)
//   FROM, UNTIL seconds since the scan began
//
// Where the specification is strict, so is this: event masks hide events, legacy and extended commands do not mix, and
// parameters cannot change while a scan runs. Section numbers are those of the Bluetooth Core 5.4, volume 4, part E.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { command_packet = 1, acl_packet = 2, sco_packet = 3, event_packet = 4, iso_packet = 5, vendor_packet = 0xff };
enum { success = 0, unknown_command = 0x01, command_disallowed = 0x0c, invalid_parameters = 0x12 };

struct advertiser {
  uint8_t address[6], address_type, event_type, data[31], length;
  double interval, from, until;  // seconds
  enum { constant, ramp, sine, list, noise } law;
  double parameters[3];
  int levels[512], level_count;
  uint32_t seed;
  double next;
  int sent;
};

static struct advertiser advertisers[256];
static int advertiser_count;

static int host = -1;
static FILE *command_log;
static bool is_bt4;
static int bundle = 1;

// What a Reset sets back.
static uint64_t event_mask, le_event_mask;
static bool is_scanning, is_extended, filters_duplicates, used_legacy, used_extended, has_random_address;
static uint8_t own_address_type;

static double scan_start;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec + time.tv_nsec * 1e-9;
}

static void die(const char *what, const char *why) {
  fprintf(stderr, "beaconctl: %s: %s\n", what, why);
  exit(2);
}

// --- Scenario ---

static int parse_hexadecimal(const char *text, uint8_t *bytes, int capacity) {
  int count = 0;
  unsigned value;
  while (count < capacity && text[0] && text[1] && sscanf(text, "%2x", &value) == 1) {
    bytes[count++] = value;
    text += 2;
  }
  return count;
}

static void parse_rssi(struct advertiser *advertiser, char *text) {
  double *p = advertiser->parameters;
  if (sscanf(text, "ramp:%lf:%lf:%lf", p, p + 1, p + 2) == 3) {
    advertiser->law = ramp;
  } else if (sscanf(text, "sine:%lf:%lf:%lf", p, p + 1, p + 2) == 3) {
    advertiser->law = sine;
  } else if (sscanf(text, "noise:%lf:%lf", p, p + 1) == 2) {
    advertiser->law = noise;
  } else if (strncmp(text, "list:", 5) == 0) {
    advertiser->law = list;
    for (char *level = strtok(text + 5, ","); level && advertiser->level_count < 512; level = strtok(NULL, ","))
      advertiser->levels[advertiser->level_count++] = atoi(level);
  } else {
    advertiser->law = constant;
    p[0] = atof(text);
  }
}

static void parse_line(char *line) {
  char kind[16], address[32], type[8], text[128], rssi[1024];
  int major, minor, power, event;
  double milliseconds;
  if (sscanf(line, "%15s", kind) != 1) return;
  if (advertiser_count == 256) die(line, "too many advertisers");
  struct advertiser *advertiser = &advertisers[advertiser_count];
  *advertiser = (struct advertiser){.until = 1e9, .seed = 0x9e3779b9u * (advertiser_count + 1)};
  double *from = &advertiser->from, *until = &advertiser->until;
  if (strcmp(kind, "ibeacon") == 0) {
    int found = sscanf(line, "%*s %31s %7s %lf %127s %d %d %d %1023s %lf %lf", address, type, &milliseconds, text,
                       &major, &minor, &power, rssi, from, until);
    if (found < 8) die(line, "not an advertiser");
    // Flags, then manufacturer's data of Apple's: a beacon of 21 bytes.
    static const uint8_t header[] = {2, 1, 6, 26, 0xff, 0x4c, 0, 2, 21};
    memcpy(advertiser->data, header, 9);
    parse_hexadecimal(text, advertiser->data + 9, 16);
    uint8_t rest[] = {major >> 8, major, minor >> 8, minor, power};
    memcpy(advertiser->data + 25, rest, 5);
    advertiser->length = 30;
    advertiser->event_type = 3;
  } else if (strcmp(kind, "raw") == 0) {
    int found = sscanf(line, "%*s %31s %7s %lf %d %127s %1023s %lf %lf", address, type, &milliseconds, &event, text,
                       rssi, from, until);
    if (found < 6) die(line, "not an advertiser");
    advertiser->event_type = event;
    advertiser->length = parse_hexadecimal(text, advertiser->data, 31);
  } else {
    die(line, "not an advertiser");
  }
  unsigned bytes[6];
  if (sscanf(address, "%x:%x:%x:%x:%x:%x", bytes, bytes + 1, bytes + 2, bytes + 3, bytes + 4, bytes + 5) != 6)
    die(address, "not an address");
  for (int i = 0; i < 6; i++) advertiser->address[i] = bytes[5 - i];
  advertiser->address_type = type[0] == 'r';
  advertiser->interval = milliseconds / 1e3;
  parse_rssi(advertiser, rssi);
  advertiser_count++;
}

static void load(const char *path) {
  FILE *file = fopen(path, "r");
  char line[2048];
  if (!file) die(path, strerror(errno));
  while (fgets(line, sizeof line, file)) {
    line[strcspn(line, "#\n")] = 0;
    parse_line(line);
  }
  fclose(file);
}

static int level(struct advertiser *advertiser, double time) {
  double *p = advertiser->parameters, value = p[0];
  switch (advertiser->law) {
  case constant: break;
  case ramp: value += (p[1] - p[0]) * (p[2] > 0 ? fmin(time / p[2], 1) : 1); break;
  case sine: value += p[1] * sin(2 * M_PI * time / p[2]); break;
  case list: value = advertiser->levels[advertiser->sent % advertiser->level_count]; break;
  case noise:
    // Four even ones make one that is about normal. The same seed gives the same levels.
    for (int i = 0; i < 4; i++) {
      advertiser->seed = advertiser->seed * 1664525u + 1013904223u;
      value += p[1] * ((advertiser->seed >> 8) / 16777216.0 - 0.5);
    }
  }
  return lround(value);
}

// --- Events ---

static void send_bytes(const uint8_t *bytes, int count) {
  while (count > 0) {
    ssize_t written = write(host, bytes, count);
    if (written >= 0) {
      bytes += written;
      count -= written;
    } else if (errno == EAGAIN) {
      poll(&(struct pollfd){host, POLLOUT, 0}, 1, 100);
    } else if (errno != EINTR) {
      return;
    }
  }
}

static void send_event(uint8_t code, const void *parameters, int count) {
  uint8_t packet[260] = {event_packet, code, count};
  memcpy(packet + 3, parameters, count);
  send_bytes(packet, count + 3);
}

// Command Complete, 7.7.14. The first parameter of each answer is the status.
static void complete(uint16_t opcode, const uint8_t *parameters, int count) {
  uint8_t event[256] = {1, opcode & 255, opcode >> 8};
  memcpy(event + 3, parameters, count);
  send_event(0x0e, event, count + 3);
  if (command_log) fprintf(command_log, "%.3f cmd %04x status %02x\n", now(), opcode, parameters[0]);
}

static void answer(uint16_t opcode, uint8_t status) { complete(opcode, &status, 1); }

// Command Status, 7.7.15.
static void refuse_unknown(uint16_t opcode) {
  uint8_t event[4] = {unknown_command, 1, opcode & 255, opcode >> 8};
  send_event(0x0f, event, 4);
  if (command_log) fprintf(command_log, "%.3f cmd %04x unknown\n", now(), opcode);
}

// --- Reports ---

static uint8_t reports[256];
static int reports_length, report_count;

// LE Advertising Report, 7.7.65.2, and LE Extended Advertising Report, 7.7.65.13.
static void send_reports(void) {
  if (report_count == 0) return;
  int subevent = is_extended ? 0x0d : 0x02;
  uint8_t event[258] = {subevent, report_count};
  memcpy(event + 2, reports, reports_length);
  bool is_hidden = !(event_mask >> 61 & 1) || !(le_event_mask >> (subevent - 1) & 1);
  if (!is_hidden) send_event(0x3e, event, reports_length + 2);
  reports_length = report_count = 0;
}

static void report(struct advertiser *advertiser, double time) {
  int rssi = level(advertiser, time);
  if (advertiser->sent++ > 0 && filters_duplicates) return;
  int length = (is_extended ? 24 : 10) + advertiser->length;
  if (reports_length + length > 250) send_reports();
  uint8_t *report = reports + reports_length;
  if (is_extended) {
    static const uint8_t types[] = {0x13, 0x15, 0x12, 0x10, 0x1b};
    memset(report, 0, 24);
    report[0] = types[advertiser->event_type];
    report[2] = advertiser->address_type;
    memcpy(report + 3, advertiser->address, 6);
    report[9] = 1;      // LE 1M
    report[11] = 0xff;  // no advertising set
    report[12] = 127;   // no transmit power
    report[13] = rssi;
    report[23] = advertiser->length;
    memcpy(report + 24, advertiser->data, advertiser->length);
  } else {
    report[0] = advertiser->event_type;
    report[1] = advertiser->address_type;
    memcpy(report + 2, advertiser->address, 6);
    report[8] = advertiser->length;
    memcpy(report + 9, advertiser->data, advertiser->length);
    report[9 + advertiser->length] = rssi;
  }
  reports_length += length;
  if (++report_count >= bundle) send_reports();
}

static void start_scan(void) {
  scan_start = now();
  for (int i = 0; i < advertiser_count; i++) {
    // They do not all send at one moment.
    advertisers[i].next = scan_start + advertisers[i].from + advertisers[i].interval * (i * 37 % 101) / 101.0;
    advertisers[i].sent = 0;
  }
}

// Sends what is due, and says when something is again.
static double play(void) {
  double time = now(), next = time + 1;
  for (int i = 0; is_scanning && i < advertiser_count; i++) {
    struct advertiser *advertiser = &advertisers[i];
    if (time - scan_start > advertiser->until) continue;
    if (advertiser->next <= time) {
      report(advertiser, advertiser->next - scan_start);
      advertiser->next = fmax(advertiser->next + advertiser->interval, time);
    }
    next = fmin(next, advertiser->next);
  }
  return next;
}

// --- Commands ---

static void reset(void) {
  is_scanning = filters_duplicates = used_legacy = used_extended = has_random_address = false;
  event_mask = 0x00001fffffffffff;
  le_event_mask = 0x1f;
  reports_length = report_count = 0;
}

static bool is_one_of(uint16_t opcode, const uint16_t *opcodes) {
  while (*opcodes && *opcodes != opcode) opcodes++;
  return *opcodes;
}

// Commands that a kernel sends when it starts, to which doing nothing is an answer.
static const uint16_t ignored[] = {0x0c13, 0x0c63, 0x0c6d, 0x2006, 0x2008, 0x2009, 0x200a, 0x2010,
                                   0x2011, 0x2012, 0x2035, 0x2037, 0x2038, 0x2039, 0x203c, 0x203d, 0};
// Legacy advertising and scanning; none of these may follow an extended one, nor the other way round (3.1.1).
static const uint16_t legacy[] = {0x2006, 0x2007, 0x2008, 0x2009, 0x200a, 0x200b, 0x200c, 0x200d, 0};

static void handle(uint16_t opcode, const uint8_t *parameters, int count) {
  if (command_log && count && opcode >= 0x2000) {
    fprintf(command_log, "%.3f cmd %04x params ", now(), opcode);
    for (int i = 0; i < count; i++) fprintf(command_log, "%02x", parameters[i]);
    fputc('\n', command_log);
  }
  if (is_bt4 && opcode >= 0x202f) return refuse_unknown(opcode);
  bool is_legacy = is_one_of(opcode, legacy), is_new = opcode >= 0x2035 && opcode <= 0x2043;
  if (!is_bt4) {
    if ((is_legacy && used_extended) || (is_new && used_legacy)) return answer(opcode, command_disallowed);
    used_legacy |= is_legacy;
    used_extended |= is_new;
  }
  uint8_t reply[256] = {success};
  int version = is_bt4 ? 8 : 9;
  switch (opcode) {
  case 0x0c03:  // Reset
    reset();
    return answer(opcode, success);
  case 0x0c01:  // Set Event Mask
    memcpy(&event_mask, parameters, 8);
    return answer(opcode, success);
  case 0x2001:  // LE Set Event Mask
    memcpy(&le_event_mask, parameters, 8);
    return answer(opcode, success);
  case 0x0c14:  // Read Local Name
    return complete(opcode, reply, 249);
  case 0x0c6c:  // Read LE Host Support
    return complete(opcode, reply, 3);
  case 0x1001: {  // Read Local Version Information
    uint8_t versions[9] = {success, version, 0, 0, version, 0xff, 0xff};
    return complete(opcode, versions, 9);
  }
  case 0x1002: {  // Read Local Supported Commands, 6.27: what this function knows
    uint8_t *octets = reply + 1;
    octets[5] = 0xc0;
    octets[14] = 0x28;
    octets[24] = 0x60;
    octets[25] = 0xf7;
    octets[26] = 0xcf;
    octets[27] = 0x83;
    octets[28] = 0x08;
    if (!is_bt4) {
      octets[36] = 0xfe;
      octets[37] = 0x7f;
    }
    return complete(opcode, reply, 65);
  }
  case 0x1003:         // Read Local Supported Features
    reply[5] = 0x60;   // LE, and no BR/EDR
    reply[8] = 0x80;   // extended features
    return complete(opcode, reply, 9);
  case 0x1004:  // Read Local Extended Features: a page of two
    reply[1] = parameters[0];
    reply[2] = 1;
    if (parameters[0] == 0) {
      reply[7] = 0x60;
      reply[10] = 0x80;
    } else if (parameters[0] == 1) {
      reply[3] = 0x02;  // LE is supported by the host
    }
    return complete(opcode, reply, 11);
  case 0x1005:  // Read Buffer Size
    return complete(opcode, reply, 8);
  case 0x1009: {  // Read BD_ADDR
    static const uint8_t address[] = {0x01, 0x00, 0x5e, 0xc0, 0x00, 0x02};
    memcpy(reply + 1, address, 6);
    return complete(opcode, reply, 7);
  }
  case 0x2002:  // LE Read Buffer Size
    reply[1] = 251;
    reply[3] = 4;
    return complete(opcode, reply, 4);
  case 0x2003:                       // LE Read Local Supported Features
    if (!is_bt4) reply[2] = 0x10;    // extended advertising: bit 12
    return complete(opcode, reply, 9);
  case 0x2007:  // LE Read Advertising Channel Transmit Power
    return complete(opcode, reply, 2);
  case 0x200f:  // LE Read Filter Accept List Size
    reply[1] = 8;
    return complete(opcode, reply, 2);
  case 0x2018:  // LE Rand
    for (int i = 1; i < 9; i++) reply[i] = rand();
    return complete(opcode, reply, 9);
  case 0x201c:  // LE Read Supported States
    memset(reply + 1, 0xff, 5);
    reply[6] = 3;
    return complete(opcode, reply, 9);
  case 0x2036:  // LE Set Extended Advertising Parameters
    return complete(opcode, reply, 2);
  case 0x203a:  // LE Read Maximum Advertising Data Length
    reply[1] = 31;
    return complete(opcode, reply, 3);
  case 0x203b:  // LE Read Number of Supported Advertising Sets
    reply[1] = 4;
    return complete(opcode, reply, 2);
  case 0x2005:  // LE Set Random Address, 7.8.4
    if (is_scanning) return answer(opcode, command_disallowed);
    has_random_address = true;
    return answer(opcode, success);
  case 0x200b: {  // LE Set Scan Parameters, 7.8.10
    if (is_scanning) return answer(opcode, command_disallowed);
    if (count < 7) return answer(opcode, invalid_parameters);
    int interval = parameters[1] | parameters[2] << 8, window = parameters[3] | parameters[4] << 8;
    if (parameters[0] > 1 || interval < 4 || interval > 0x4000 || window > interval)
      return answer(opcode, invalid_parameters);
    own_address_type = parameters[5];
    return answer(opcode, success);
  }
  case 0x2041:  // LE Set Extended Scan Parameters, 7.8.64
    if (is_scanning) return answer(opcode, command_disallowed);
    if (count < 8 || !(parameters[2] & 5)) return answer(opcode, invalid_parameters);
    own_address_type = parameters[0];
    return answer(opcode, success);
  case 0x200c:    // LE Set Scan Enable, 7.8.11
  case 0x2042: {  // LE Set Extended Scan Enable, 7.8.65
    bool enable = parameters[0];
    bool takes_random_address = own_address_type == 1 || own_address_type == 3;
    if (parameters[0] > 1 || (enable && takes_random_address && !has_random_address))
      return answer(opcode, invalid_parameters);
    if (opcode == 0x200c && enable && is_scanning) return answer(opcode, command_disallowed);
    is_extended = opcode == 0x2042;
    filters_duplicates = parameters[1];
    if (enable && !is_scanning) start_scan();
    if (!enable) send_reports();
    is_scanning = enable;
    return answer(opcode, success);
  }
  }
  if (is_one_of(opcode, ignored)) return answer(opcode, success);
  refuse_unknown(opcode);
}

// --- Host ---

static uint8_t received[8192];
static int received_length;

// Handles the packets that have arrived, and says whether the host is still there.
static bool receive(void) {
  int length = read(host, received + received_length, sizeof received - received_length);
  if (length <= 0) return length < 0 && (errno == EAGAIN || errno == EINTR);
  received_length += length;
  int start = 0;
  while (start < received_length) {
    uint8_t *packet = received + start;
    int rest = received_length - start, header, content = 0;
    switch (packet[0]) {
    case command_packet: case sco_packet: header = 4; break;
    case acl_packet: case iso_packet: header = 5; break;
    case vendor_packet: header = 4; break;  // the kernel's answer to what opened the adapter
    default: return false;
    }
    if (rest < header) break;
    if (packet[0] == command_packet || packet[0] == sco_packet) content = packet[3];
    if (packet[0] == acl_packet || packet[0] == iso_packet) content = packet[3] | packet[4] << 8;
    if (rest < header + content) break;
    if (packet[0] == command_packet) handle(packet[1] | packet[2] << 8, packet + header, content);
    start += header + content;
  }
  memmove(received, received + start, received_length - start);
  received_length -= start;
  return true;
}

// Makes an adapter of the kernel, and says its name.
static void open_adapter(char *name, int capacity) {
  host = open("/dev/vhci", O_RDWR | O_NONBLOCK);
  if (host < 0) die("/dev/vhci", strerror(errno));
  uint8_t request[2] = {vendor_packet, 0}, reply[8];
  if (write(host, request, 2) < 0) die("/dev/vhci", strerror(errno));
  for (int attempt = 0; attempt < 100; attempt++) {
    if (read(host, reply, sizeof reply) >= 4) {
      snprintf(name, capacity, "hci%d", reply[2] | reply[3] << 8);
      return;
    }
    usleep(10000);
  }
  die("/dev/vhci", "the kernel makes no adapter");
}

static int listen_at(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (strlen(path) >= sizeof address.sun_path) die(path, "too long for a socket");
  strcpy(address.sun_path, path);
  unlink(path);
  int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 4)) die(path, strerror(errno));
  return listener;
}

static void end(int signal) {
  (void)signal;
  _exit(0);
}

int main(int count, char **arguments) {
  if (count < 3) die("usage", "beaconctl vhci|unix:PATH SCENARIO [--bt4] [--bundle N] [--ready FILE] [--log FILE]");
  const char *ready = NULL;
  for (int i = 3; i < count; i++) {
    const char *option = arguments[i];
    if (strcmp(option, "--bt4") == 0) {
      is_bt4 = true;
    } else if (i + 1 == count) {
      die(option, "no such option, or its value is missing");
    } else if (strcmp(option, "--bundle") == 0) {
      bundle = atoi(arguments[++i]);
    } else if (strcmp(option, "--ready") == 0) {
      ready = arguments[++i];
    } else if (strcmp(option, "--log") == 0) {
      command_log = fopen(arguments[++i], "w");
      if (!command_log) die(arguments[i], strerror(errno));
      setlinebuf(command_log);
    } else {
      die(option, "no such option");
    }
  }
  signal(SIGPIPE, SIG_IGN);
  signal(SIGTERM, end);
  signal(SIGINT, end);
  load(arguments[2]);

  int listener = -1;
  char name[128];
  snprintf(name, sizeof name, "%s", arguments[1]);
  if (strcmp(name, "vhci") == 0) {
    open_adapter(name, sizeof name);
  } else if (strncmp(name, "unix:", 5) == 0) {
    listener = listen_at(arguments[1] + 5);
  } else {
    die(name, "neither vhci nor unix:PATH");
  }
  reset();
  if (ready) {
    FILE *file = fopen(ready, "w");
    if (!file || fprintf(file, "%s\n", name) < 0 || fclose(file) != 0) die(ready, strerror(errno));
  }
  while (true) {
    if (host < 0) {
      host = accept(listener, NULL, NULL);
      if (host < 0) continue;
      fcntl(host, F_SETFL, O_NONBLOCK);
      received_length = 0;
      reset();
    }
    double wait = fmax(play() - now(), 0);
    struct timespec time = {.tv_sec = wait, .tv_nsec = (wait - floor(wait)) * 1e9};
    if (ppoll(&(struct pollfd){host, POLLIN, 0}, 1, &time, NULL) <= 0 || receive()) continue;
    if (listener < 0) return 0;
    close(host);
    host = -1;
  }
}
