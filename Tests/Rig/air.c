// Bluetooth LE controllers that share one simulated air: they hear each other's advertising, and they connect. Each
// one speaks HCI over H4, to a kernel through /dev/vhci, or on a socket to one host after the other.
//
//   air [--ctl FIFO] [--log FILE] [--ready FILE] [--ppe N] [--seed N] PORT...
//
//   --ctl    a FIFO that the program makes for the orders below
//   --log    a file for commands, refusals, connections and orders; a line begins with the seconds since the start
//   --ready  a file that the program writes when hosts may come
//   --ppe    how many PDUs each side sends in a connection event, at most (6)
//   --seed   begins the random numbers, which differ from run to run otherwise
//
// PORT is vhci[,NAME=VALUE]... or unix:PATH[,NAME=VALUE]...; ports are numbered from 0. Each has a controller:
//
//   addr=AA:BB:CC:DD:EE:FF  its public address (02:00:C0:5E:00:01 for port 0, and so on)
//   bt=4|5                  Bluetooth 4.2, which knows no extended commands, or 5.0 (5)
//   sets=N                  how many advertising sets it has (4)
//   conns=N                 how many connections it has (8)
//   mtu=N                   how many bytes of an ACL data packet it takes and sends (251)
//   bufs=N                  how many ACL data packets of the host it takes at a time (8)
//   pfeat=0|1               Peripheral-initiated Features Exchange and the other link layer features of 4.1 (1)
//   dle=0|1                 LE Data Packet Length Extension (1)
//   dual=0|1                BR/EDR too, as most adapters have it, but no more than a kernel asks for when it starts (0)
//   lean=0|1                few roles at a time: it does not scan while it initiates, it does not initiate while it
//                           scans, and while it has a connection its advertising cannot be connectable (0)
//
// An order is a line. A and B are numbers of ports; what is between them holds for both directions.
//
//   rssi A B DBM      how loud A and B hear each other (-60)
//   loss A B PERCENT  how much of what one of them sends the other one does not hear (0)
//   far A B           A and B do not hear each other
//   near A B          A and B hear each other again
//   dropnext A B      A and B are far as soon as A initiates
//   dropconn A        A and its next peer are far as soon as both hosts know of the connection
//   stat              writes to the log what each controller does
//
// The air is simple. An advertising event comes each interval and 0 to 10 ms. A scanner or an initiator hears it with
// the probability window / interval. A connection event comes each connection interval, and its PDUs carry 27 bytes, or
// 251 after a data length update. There are no frequencies, no collisions, no encryption, no periodic advertising and
// no resolvable addresses, and a peripheral listens to each connection event.
//
// Where the specification is strict, so is this program: event masks hide events, legacy and extended commands do not
// mix, and a host cannot change what is in use. Section numbers are those of the Bluetooth Core 5.4, volume 4, part E,
// unless a comment names another part. A byte is what the specification calls an octet. `commands` is the table of the
// commands that the controllers know.
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

// --- The specification's numbers ---

// H4: part A, 2.
enum { COMMAND_PACKET = 0x01, ACL_DATA_PACKET = 0x02, EVENT_PACKET = 0x04, VENDOR_PACKET = 0xff };
enum { COMMAND_HEADER = 4, ACL_DATA_HEADER = 5, EVENT_HEADER = 3, VENDOR_LENGTH = 4 };  // bytes, with the type's

// Volume 1, part F, 1.3.
enum {
  SUCCESS = 0x00,
  UNKNOWN_HCI_COMMAND = 0x01,
  UNKNOWN_CONNECTION_IDENTIFIER = 0x02,
  MEMORY_CAPACITY_EXCEEDED = 0x07,
  CONNECTION_TIMEOUT = 0x08,
  CONNECTION_LIMIT_EXCEEDED = 0x09,
  COMMAND_DISALLOWED = 0x0c,
  INVALID_HCI_COMMAND_PARAMETERS = 0x12,
  CONNECTION_TERMINATED_BY_LOCAL_HOST = 0x16,
  ADVERTISING_TIMEOUT = 0x3c,
  CONNECTION_FAILED_TO_BE_ESTABLISHED = 0x3e,
  UNKNOWN_ADVERTISING_IDENTIFIER = 0x42,
  LIMIT_REACHED = 0x43,
};

enum {
  // Link control: 7.1.
  HCI_INQUIRY = 0x0401,
  HCI_CREATE_CONNECTION = 0x0405,
  HCI_DISCONNECT = 0x0406,
  HCI_READ_REMOTE_VERSION_INFORMATION = 0x041d,
  // Controller & baseband: 7.3.
  HCI_SET_EVENT_MASK = 0x0c01,
  HCI_RESET = 0x0c03,
  HCI_WRITE_LOCAL_NAME = 0x0c13,
  HCI_READ_LOCAL_NAME = 0x0c14,
  HCI_WRITE_CONNECTION_ACCEPT_TIMEOUT = 0x0c16,
  HCI_WRITE_SCAN_ENABLE = 0x0c1a,
  HCI_READ_CLASS_OF_DEVICE = 0x0c23,
  HCI_WRITE_CLASS_OF_DEVICE = 0x0c24,
  HCI_READ_VOICE_SETTING = 0x0c25,
  HCI_READ_TRANSMIT_POWER_LEVEL = 0x0c2d,
  HCI_READ_NUMBER_OF_SUPPORTED_IAC = 0x0c38,
  HCI_READ_CURRENT_IAC_LAP = 0x0c39,
  HCI_WRITE_EXTENDED_INQUIRY_RESPONSE = 0x0c52,
  HCI_WRITE_SIMPLE_PAIRING_MODE = 0x0c56,
  HCI_WRITE_LE_HOST_SUPPORT = 0x0c6d,
  // Informational parameters, and status parameters: 7.4 and 7.5.
  HCI_READ_LOCAL_VERSION_INFORMATION = 0x1001,
  HCI_READ_LOCAL_SUPPORTED_COMMANDS = 0x1002,
  HCI_READ_LOCAL_SUPPORTED_FEATURES = 0x1003,
  HCI_READ_LOCAL_EXTENDED_FEATURES = 0x1004,
  HCI_READ_BUFFER_SIZE = 0x1005,
  HCI_READ_BD_ADDR = 0x1009,
  HCI_READ_RSSI = 0x1405,
  // LE controller: 7.8.
  HCI_LE_SET_EVENT_MASK = 0x2001,
  HCI_LE_READ_BUFFER_SIZE = 0x2002,
  HCI_LE_READ_LOCAL_SUPPORTED_FEATURES = 0x2003,
  HCI_LE_SET_RANDOM_ADDRESS = 0x2005,
  HCI_LE_SET_ADVERTISING_PARAMETERS = 0x2006,
  HCI_LE_READ_ADVERTISING_PHYSICAL_CHANNEL_TX_POWER = 0x2007,
  HCI_LE_SET_ADVERTISING_DATA = 0x2008,
  HCI_LE_SET_SCAN_RESPONSE_DATA = 0x2009,
  HCI_LE_SET_ADVERTISING_ENABLE = 0x200a,
  HCI_LE_SET_SCAN_PARAMETERS = 0x200b,
  HCI_LE_SET_SCAN_ENABLE = 0x200c,
  HCI_LE_CREATE_CONNECTION = 0x200d,
  HCI_LE_CREATE_CONNECTION_CANCEL = 0x200e,
  HCI_LE_READ_FILTER_ACCEPT_LIST_SIZE = 0x200f,
  HCI_LE_CLEAR_FILTER_ACCEPT_LIST = 0x2010,
  HCI_LE_ADD_DEVICE_TO_FILTER_ACCEPT_LIST = 0x2011,
  HCI_LE_REMOVE_DEVICE_FROM_FILTER_ACCEPT_LIST = 0x2012,
  HCI_LE_CONNECTION_UPDATE = 0x2013,
  HCI_LE_READ_REMOTE_FEATURES = 0x2016,
  HCI_LE_RAND = 0x2018,
  HCI_LE_ENABLE_ENCRYPTION = 0x2019,
  HCI_LE_READ_SUPPORTED_STATES = 0x201c,
  HCI_LE_SET_DATA_LENGTH = 0x2022,
  HCI_LE_READ_SUGGESTED_DEFAULT_DATA_LENGTH = 0x2023,
  HCI_LE_WRITE_SUGGESTED_DEFAULT_DATA_LENGTH = 0x2024,
  HCI_LE_READ_MAXIMUM_DATA_LENGTH = 0x202f,
  HCI_LE_SET_ADVERTISING_SET_RANDOM_ADDRESS = 0x2035,
  HCI_LE_SET_EXTENDED_ADVERTISING_PARAMETERS = 0x2036,
  HCI_LE_SET_EXTENDED_ADVERTISING_DATA = 0x2037,
  HCI_LE_SET_EXTENDED_SCAN_RESPONSE_DATA = 0x2038,
  HCI_LE_SET_EXTENDED_ADVERTISING_ENABLE = 0x2039,
  HCI_LE_READ_MAXIMUM_ADVERTISING_DATA_LENGTH = 0x203a,
  HCI_LE_READ_NUMBER_OF_SUPPORTED_ADVERTISING_SETS = 0x203b,
  HCI_LE_REMOVE_ADVERTISING_SET = 0x203c,
  HCI_LE_CLEAR_ADVERTISING_SETS = 0x203d,
  HCI_LE_SET_EXTENDED_SCAN_PARAMETERS = 0x2041,
  HCI_LE_SET_EXTENDED_SCAN_ENABLE = 0x2042,
  HCI_LE_EXTENDED_CREATE_CONNECTION = 0x2043,
};

// 7.7.
enum {
  HCI_DISCONNECTION_COMPLETE = 0x05,
  HCI_READ_REMOTE_VERSION_INFORMATION_COMPLETE = 0x0c,
  HCI_COMMAND_COMPLETE = 0x0e,
  HCI_COMMAND_STATUS = 0x0f,
  HCI_NUMBER_OF_COMPLETED_PACKETS = 0x13,
  HCI_LE_META = 0x3e,
};

// 7.7.65. An LE event is hidden by bit 61 of the event mask, and by the bit of the LE event mask that is one less.
enum {
  HCI_LE_CONNECTION_COMPLETE = 0x01,
  HCI_LE_ADVERTISING_REPORT = 0x02,
  HCI_LE_CONNECTION_UPDATE_COMPLETE = 0x03,
  HCI_LE_READ_REMOTE_FEATURES_COMPLETE = 0x04,
  HCI_LE_DATA_LENGTH_CHANGE = 0x07,
  HCI_LE_ENHANCED_CONNECTION_COMPLETE = 0x0a,
  HCI_LE_EXTENDED_ADVERTISING_REPORT = 0x0d,
  HCI_LE_ADVERTISING_SET_TERMINATED = 0x12,
};
enum { LE_META_EVENT_MASK_BIT = 61 };

// Advertising_Event_Properties (7.8.53), and Event_Type of an extended report (7.7.65.13), which differ in bit 3.
enum { CONNECTABLE = 0x01, SCANNABLE = 0x02, DIRECTED = 0x04, SCAN_RESPONSE = 0x08, LEGACY_PDU = 0x10 };
enum { HIGH_DUTY_CYCLE = 0x08 };

// Event_Type of a legacy report: 7.7.65.2.
enum { ADV_IND = 0, ADV_DIRECT_IND = 1, ADV_SCAN_IND = 2, ADV_NONCONN_IND = 3, SCAN_RSP = 4 };

// The roles' numbers in LE Connection Complete: 7.7.65.1.
enum { CENTRAL = 0, PERIPHERAL = 1 };

// Packet_Boundary_Flag: 5.4.2. Only hosts send the first one.
enum { FIRST_NOT_FLUSHABLE = 0, CONTINUING = 1, FIRST_FLUSHABLE = 2 };

enum {
  VERSION_4_2 = 8,  // Assigned Numbers, 2.1
  VERSION_5_0 = 9,
  NO_COMPANY = 0xffff,
  ADVERTISING_INTERVAL_LEAST = 0x20,  // 20 ms, in 0.625 ms
  DATA_PDU_SHORT = 27,                // bytes: volume 6, part B, 4.5.10
  DATA_PDU_LONG = 251,                // bytes, with LE Data Packet Length Extension
  LEGACY_DATA_LENGTH = 31,            // bytes of advertising data in a legacy PDU
  REPORTED_DATA_LENGTH = 229,         // bytes of them that there is room for in one report
  NO_SID = 0xff,
  NO_TX_POWER = 127,
  LE_1M = 1,
};
static const double advertising_unit = 0.625e-3, interval_unit = 1.25e-3, timeout_unit = 10e-3;  // seconds

// --- The controllers ---

enum {
  PORTS = 12,
  ADVERTISING_SETS = 24,   // of a controller
  CONNECTIONS = 64,        // of all controllers
  ACCEPT_LIST_SIZE = 8,
  REMEMBERED = 256,        // PDUs that a scanner reports once
  ACL_DATA_LENGTH = 1024,  // bytes of an ACL data packet
};
static const double advertising_delay = 10e-3;  // seconds: advDelay is shorter, volume 6, part B, 4.4.2.2

struct address {
  uint8_t type;      // 0: public, 1: random
  uint8_t bytes[6];  // the least significant one first
};

struct advertising_data {
  int length;  // bytes
  uint8_t bytes[REPORTED_DATA_LENGTH];
};

// Legacy commands have one set, without a handle. It is the first one of the controller, which has no extended sets
// then.
struct advertising_set {
  bool exists;
  bool is_extended;            // extended commands made it; its PDUs may be legacy ones
  bool is_enabled;
  uint8_t handle;              // Advertising_Handle
  uint8_t sid;                 // Advertising_SID
  uint16_t properties;         // Advertising_Event_Properties
  double interval;             // seconds
  uint8_t own_address_type;    // Own_Address_Type
  bool has_random_address;     // of its own, as an extended set has to
  uint8_t random_address[6];
  struct address peer;         // the only one that may connect, if the set is directed
  bool refuses_others;         // only who is on the accept list may connect
  struct advertising_data data;
  struct advertising_data scan_response;
  int events;                  // since the host enabled it
  int max_events;              // after which it ends; 0: there is no limit
  double next;                 // time of the next event, in seconds of the monotonic clock
  double until;                // time when it ends, in seconds of the monotonic clock
};

struct scanner {
  bool is_enabled;
  bool is_extended;            // it sends extended reports
  bool is_active;              // it asks for scan responses
  bool filters_others;         // it reports only who is on the accept list
  bool filters_duplicates;     // it reports nothing twice
  uint8_t own_address_type;    // Own_Address_Type
  double chance;               // of hearing a PDU: window / interval
  struct {
    struct address address;
    uint8_t type;              // Event_Type of a legacy report
  } reported[REMEMBERED];      // since the host enabled it
  int reported_count;
};

struct connection_parameters {
  uint16_t interval;           // Connection_Interval, in 1.25 ms
  uint16_t latency;            // Max_Latency, in connection events
  uint16_t timeout;            // Supervision_Timeout, in 10 ms
};

struct initiator {
  bool is_enabled;
  bool was_cancelled;          // but the host has not had the event yet
  bool takes_accept_list;      // it connects to anybody on the accept list, and not to `peer`
  struct address peer;
  uint8_t own_address_type;    // Own_Address_Type
  double chance;               // of hearing a PDU: window / interval
  struct connection_parameters parameters;
};

// The parameters of a command. Those that a short command lacks are zero.
struct parameters {
  const uint8_t *next;
  const uint8_t *end;
};

// An event on its way to the host.
struct message {
  int length;                  // bytes
  uint8_t bytes[EVENT_HEADER + 255];
};

struct controller {
  // From the command line
  int number;                  // of the port
  bool is_bt4;
  bool has_features_4_1;
  bool has_data_length_extension;
  bool is_dual;
  bool is_lean;
  int max_sets;
  int max_connections;
  int acl_length;              // LE_ACL_Data_Packet_Length, in bytes
  int acl_packets;             // Total_Num_LE_ACL_Data_Packets
  uint8_t public_address[6];

  // The host
  int host;                    // file descriptor; -1: there is no host
  int listener;                // file descriptor; -1: the host is a kernel
  uint8_t received[ACL_DATA_HEADER + 0xffff];
  int received_length;         // bytes
  long command_count;
  long report_count;

  // The command that the controller carries out
  struct parameters parameters;
  struct message answer;       // Command Complete

  // What HCI_Reset clears
  uint64_t event_mask;
  uint64_t le_event_mask;
  bool used_legacy;            // commands, which excludes extended ones
  bool used_extended;          // commands, which excludes legacy ones
  bool has_random_address;
  uint8_t random_address[6];
  uint16_t suggested_length;   // Suggested_Max_TX_Octets, in bytes
  struct address accept_list[ACCEPT_LIST_SIZE];
  int accept_list_length;
  struct advertising_set sets[ADVERTISING_SETS];
  struct scanner scanner;
  struct initiator initiator;
};

// An ACL data packet of a host, which is kept until the air has carried all of it.
struct acl_packet {
  struct acl_packet *next;
  uint8_t boundary;            // Packet_Boundary_Flag
  int length;                  // bytes
  int carried;                 // bytes that the air has carried, in whole PDUs
  uint8_t data[ACL_DATA_LENGTH];
};

// One of the two ends of a connection.
struct side {
  struct connection *connection;
  struct side *peer;
  struct controller *controller;
  int role;                    // CENTRAL or PERIPHERAL
  int handle;                  // Connection_Handle; -1: the connection is over for this side
  struct address address;      // on the air
  int pdu_length;              // bytes that it may send in a PDU
  struct acl_packet *first;    // of those that it has yet to send
  struct acl_packet *last;
  bool awaits_features;        // of the peer
  bool awaits_version;         // of the peer
};

struct connection {
  bool exists;
  struct side sides[2];        // by role
  struct connection_parameters parameters;
  struct connection_parameters new_parameters;
  int update_event;            // the event from which on the new parameters hold; 0: there are none
  bool awaits_data_length;     // the controllers agree on long PDUs soon
  struct side *terminator;     // the side whose host has ended it; NULL: neither has
  uint8_t reason;              // Reason that this host gave
  int events;                  // in which the sides heard each other
  double began;                // time, in seconds of the monotonic clock
  double heard;                // time of the last event in which the sides heard each other
  double next;                 // time of the next event
};

static struct controller controllers[PORTS];
static int controller_count;
static struct connection connections[CONNECTIONS];
static int pdus_per_event = 6;

// --- Time, chance and the log ---

static FILE *log_file;
static double start_time;
static unsigned seed;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec + time.tv_nsec * 1e-9;
}

// A random number of [0, 1).
static double draw(void) {
  seed = seed * 1664525u + 1013904223u;
  return (seed >> 8) / 16777216.0;
}

__attribute__((format(printf, 1, 2))) static void note(const char *format, ...) {
  if (!log_file) return;
  va_list arguments;
  va_start(arguments, format);
  fprintf(log_file, "%.4f ", now() - start_time);
  vfprintf(log_file, format, arguments);
  fputc('\n', log_file);
  va_end(arguments);
}

static void die(const char *what, const char *why) {
  fprintf(stderr, "air: %s: %s\n", what, why);
  exit(2);
}

// --- Paths between the controllers ---

static struct {
  int8_t rssi;   // dBm
  uint8_t loss;  // percent
  bool is_far;
} paths[PORTS][PORTS];
static int drop_next = -1;        // A of the order `dropnext`; -1: there is no such order
static int drop_next_peer;        // B of that order
static int drop_connection = -1;  // A of the order `dropconn`; -1: there is no such order

static void separate(int a, int b, bool far) { paths[a][b].is_far = paths[b][a].is_far = far; }

static bool hears(const struct controller *listener, const struct controller *sender) {
  int loss = paths[sender->number][listener->number].loss;
  if (paths[sender->number][listener->number].is_far) return false;
  return loss == 0 || draw() * 100 >= loss;
}

// In dBm. It varies by 2 dB in both directions.
static int rssi(const struct controller *listener, const struct controller *sender) {
  return paths[sender->number][listener->number].rssi + (int)(draw() * 5) - 2;
}

// --- Events to a host ---

static void send_bytes(struct controller *c, const uint8_t *bytes, int count) {
  while (c->host >= 0 && count > 0) {
    ssize_t written = write(c->host, bytes, count);
    if (written >= 0) {
      bytes += written;
      count -= written;
    } else if (errno == EAGAIN) {
      poll(&(struct pollfd){c->host, POLLOUT, 0}, 1, 200);
    } else if (errno != EINTR) {
      return;
    }
  }
}

static struct message event(int code) { return (struct message){EVENT_HEADER, {EVENT_PACKET, code}}; }

static void add_bytes(struct message *message, const void *bytes, int count) {
  assert(message->length + count <= (int)sizeof message->bytes);
  memcpy(message->bytes + message->length, bytes, count);
  message->length += count;
}

static void add_8(struct message *message, int value) { add_bytes(message, &(uint8_t){value}, 1); }

static void add_16(struct message *message, int value) { add_bytes(message, (uint8_t[]){value, value >> 8}, 2); }

static void add_zeros(struct message *message, int count) {
  while (count-- > 0) add_8(message, 0);
}

static void add_address(struct message *message, const struct address *address) {
  add_8(message, address->type);
  add_bytes(message, address->bytes, 6);
}

static void send_event(struct controller *c, struct message *message) {
  message->bytes[2] = message->length - EVENT_HEADER;
  send_bytes(c, message->bytes, message->length);
}

static struct message le_event(int subevent) {
  struct message message = event(HCI_LE_META);
  add_8(&message, subevent);
  return message;
}

static bool is_shown(const struct controller *c, int subevent) {
  return (c->event_mask >> LE_META_EVENT_MASK_BIT & 1) && (c->le_event_mask >> (subevent - 1) & 1);
}

static void send_le_event(struct controller *c, struct message *message) {
  if (is_shown(c, message->bytes[EVENT_HEADER])) send_event(c, message);
}

// Command Status: 7.7.15.
static void send_command_status(struct controller *c, uint16_t opcode, uint8_t status) {
  struct message message = event(HCI_COMMAND_STATUS);
  add_8(&message, status);
  add_8(&message, 1);  // Num_HCI_Command_Packets
  add_16(&message, opcode);
  send_event(c, &message);
}

// Number Of Completed Packets: 7.7.19.
static void report_completed_packets(struct controller *c, int handle, int count) {
  struct message message = event(HCI_NUMBER_OF_COMPLETED_PACKETS);
  add_8(&message, 1);  // Num_Handles
  add_16(&message, handle);
  add_16(&message, count);
  send_event(c, &message);
}

// --- Addresses ---

static bool is_same(const struct address *a, const struct address *b) {
  return a->type == b->type && memcmp(a->bytes, b->bytes, 6) == 0;
}

static bool is_accepted(const struct controller *c, const struct address *address) {
  for (int i = 0; i < c->accept_list_length; i++)
    if (is_same(&c->accept_list[i], address)) return true;
  return false;
}

// Own_Address_Type 2 and 3 ask for a resolvable address, and say which address to take in place of it.
static struct address own_address(const struct controller *c, uint8_t type, const uint8_t *random_address) {
  struct address address = {.type = type & 1};
  memcpy(address.bytes, address.type ? random_address : c->public_address, 6);
  return address;
}

static struct address initiator_address(const struct controller *c) {
  return own_address(c, c->initiator.own_address_type, c->random_address);
}

static struct address set_address(const struct controller *c, const struct advertising_set *set) {
  return own_address(c, set->own_address_type, set->is_extended ? set->random_address : c->random_address);
}

// --- Connections ---

// The side that the controller has in a connection, unless that is over for it.
static struct side *side_of(const struct controller *c, struct connection *connection) {
  for (int role = CENTRAL; connection->exists && role <= PERIPHERAL; role++)
    if (connection->sides[role].controller == c && connection->sides[role].handle >= 0) return &connection->sides[role];
  return NULL;
}

static struct side *find_side(const struct controller *c, int handle) {
  for (int i = 0; i < CONNECTIONS; i++) {
    struct side *side = side_of(c, &connections[i]);
    if (side && side->handle == handle) return side;
  }
  return NULL;
}

static int count_connections(const struct controller *c) {
  int count = 0;
  for (int i = 0; i < CONNECTIONS; i++) count += side_of(c, &connections[i]) != NULL;
  return count;
}

static int free_handle(const struct controller *c) {
  int handle = 0x40;
  while (find_side(c, handle)) handle++;
  return handle;
}

static void add_parameters(struct message *message, const struct connection_parameters *parameters) {
  add_16(message, parameters->interval);
  add_16(message, parameters->latency);
  add_16(message, parameters->timeout);
}

// LE Enhanced Connection Complete, 7.7.65.10, if the host wants it, or LE Connection Complete, 7.7.65.1. Without a
// connection there is only the status.
static void report_connection(struct controller *c, uint8_t status, const struct side *side) {
  struct address peer = {0};
  struct connection_parameters parameters = {0};
  if (side) {
    peer = side->peer->address;
    parameters = side->connection->parameters;
  }
  bool is_enhanced = is_shown(c, HCI_LE_ENHANCED_CONNECTION_COMPLETE);
  struct message message = le_event(is_enhanced ? HCI_LE_ENHANCED_CONNECTION_COMPLETE : HCI_LE_CONNECTION_COMPLETE);
  add_8(&message, status);
  add_16(&message, side ? side->handle : 0);
  add_8(&message, side ? side->role : 0);
  add_address(&message, &peer);
  if (is_enhanced) add_zeros(&message, 12);  // Local_ and Peer_Resolvable_Private_Address
  add_parameters(&message, &parameters);
  add_8(&message, 0);  // Central_Clock_Accuracy: 500 ppm
  send_le_event(c, &message);
}

static void drop_packets(struct side *side) {
  while (side->first) {
    struct acl_packet *packet = side->first;
    side->first = packet->next;
    free(packet);
  }
  side->last = NULL;
}

static void release_if_over(struct connection *connection) {
  if (connection->sides[CENTRAL].handle < 0 && connection->sides[PERIPHERAL].handle < 0) connection->exists = false;
}

// Ends the connection for this side, and does not tell the host.
static void abandon(struct side *side) {
  side->handle = -1;
  drop_packets(side);
  release_if_over(side->connection);
}

// Disconnection Complete: 7.7.5.
static void end_side(struct side *side, uint8_t reason) {
  int handle = side->handle;
  if (handle < 0) return;
  note("%d disconnected handle %x reason %02x after %.3f s", side->controller->number, handle, reason,
       now() - side->connection->began);
  abandon(side);
  struct message message = event(HCI_DISCONNECTION_COMPLETE);
  add_8(&message, SUCCESS);
  add_16(&message, handle);
  add_8(&message, reason);
  send_event(side->controller, &message);
}

static void begin_side(struct connection *connection, int role, struct controller *c, struct address address) {
  connection->sides[role] = (struct side){
      .connection = connection,
      .peer = &connection->sides[!role],
      .controller = c,
      .role = role,
      .handle = free_handle(c),
      .address = address,
      .pdu_length = DATA_PDU_SHORT,
  };
}

// Returns NULL if there are too many connections.
static struct connection *connect_controllers(struct controller *central, struct controller *peripheral,
                                              const struct advertising_set *set) {
  struct connection *connection = connections;
  while (connection < connections + CONNECTIONS && connection->exists) connection++;
  if (connection == connections + CONNECTIONS) return NULL;
  double time = now(), interval = central->initiator.parameters.interval * interval_unit;
  *connection = (struct connection){
      .parameters = central->initiator.parameters,
      .began = time,
      .heard = time,
      // The first event comes after transmitWindowDelay and transmitWindowOffset: volume 6, part B, 4.5.3.
      .next = time + 1.25e-3 + draw() * interval,
  };
  begin_side(connection, CENTRAL, central, initiator_address(central));
  begin_side(connection, PERIPHERAL, peripheral, set_address(peripheral, set));
  connection->exists = true;
  // A controller whose host has suggested long PDUs asks the peer for them by itself: 7.8.35.
  connection->awaits_data_length =
      central->has_data_length_extension && peripheral->has_data_length_extension &&
      (central->suggested_length > DATA_PDU_SHORT || peripheral->suggested_length > DATA_PDU_SHORT);
  note("%d connects to %d (handles %x %x, interval %.2f ms, timeout %.0f ms)", central->number, peripheral->number,
       connection->sides[CENTRAL].handle, connection->sides[PERIPHERAL].handle, interval * 1e3,
       connection->parameters.timeout * timeout_unit * 1e3);
  return connection;
}

// --- Connection events ---

// LE Connection Update Complete: 7.7.65.3.
static void take_new_parameters(struct connection *connection) {
  connection->update_event = 0;
  connection->parameters = connection->new_parameters;
  for (int role = CENTRAL; role <= PERIPHERAL; role++) {
    struct message message = le_event(HCI_LE_CONNECTION_UPDATE_COMPLETE);
    add_8(&message, SUCCESS);
    add_16(&message, connection->sides[role].handle);
    add_parameters(&message, &connection->parameters);
    send_le_event(connection->sides[role].controller, &message);
  }
  note("update: interval %.2f ms timeout %.0f ms", connection->parameters.interval * interval_unit * 1e3,
       connection->parameters.timeout * timeout_unit * 1e3);
}

// FeatureSet: volume 6, part B, 4.6.
static void add_le_features(struct message *message, const struct controller *c) {
  enum {
    LE_ENCRYPTION = 1 << 0,
    CONNECTION_PARAMETERS_REQUEST = 1 << 1,
    EXTENDED_REJECT_INDICATION = 1 << 2,
    PERIPHERAL_INITIATED_FEATURES_EXCHANGE = 1 << 3,
    LE_PING = 1 << 4,
    LE_DATA_PACKET_LENGTH_EXTENSION = 1 << 5,
    LE_EXTENDED_ADVERTISING = 1 << 12,
    CHANNEL_SELECTION_ALGORITHM_2 = 1 << 14,
  };
  int features = LE_ENCRYPTION;
  if (c->has_features_4_1)
    features |= CONNECTION_PARAMETERS_REQUEST | EXTENDED_REJECT_INDICATION |
                PERIPHERAL_INITIATED_FEATURES_EXCHANGE | LE_PING;
  if (c->has_data_length_extension) features |= LE_DATA_PACKET_LENGTH_EXTENSION;
  if (!c->is_bt4) features |= LE_EXTENDED_ADVERTISING | CHANNEL_SELECTION_ALGORITHM_2;
  add_16(message, features);
  add_zeros(message, 6);
}

// LE Read Remote Features Complete: 7.7.65.4.
static void report_remote_features(struct side *side) {
  struct message message = le_event(HCI_LE_READ_REMOTE_FEATURES_COMPLETE);
  add_8(&message, SUCCESS);
  add_16(&message, side->handle);
  add_le_features(&message, side->peer->controller);
  send_le_event(side->controller, &message);
}

static int version(const struct controller *c) { return c->is_bt4 ? VERSION_4_2 : VERSION_5_0; }

// Read Remote Version Information Complete: 7.7.12.
static void report_remote_version(struct side *side) {
  struct message message = event(HCI_READ_REMOTE_VERSION_INFORMATION_COMPLETE);
  add_8(&message, SUCCESS);
  add_16(&message, side->handle);
  add_8(&message, version(side->peer->controller));
  add_16(&message, NO_COMPANY);
  add_16(&message, 0);  // Subversion
  send_event(side->controller, &message);
}

// How long a PDU is on the air at LE 1M, in microseconds: 8 a byte, and there are 14 bytes besides its payload, with a
// preamble, an access address, a header, a MIC and a CRC.
static int air_time(int length) { return (length + 14) * 8; }

// LE Data Length Change: 7.7.65.7.
static void lengthen_pdus(struct connection *connection) {
  connection->awaits_data_length = false;
  for (int role = CENTRAL; role <= PERIPHERAL; role++) {
    struct side *side = &connection->sides[role];
    side->pdu_length = DATA_PDU_LONG;
    struct message message = le_event(HCI_LE_DATA_LENGTH_CHANGE);
    add_16(&message, side->handle);
    for (int direction = 0; direction < 2; direction++) {
      add_16(&message, DATA_PDU_LONG);
      add_16(&message, air_time(DATA_PDU_LONG));
    }
    send_le_event(side->controller, &message);
  }
}

// Link Layer procedures, volume 6, part B, 5.1: a question goes in one event, and its answer comes in another one. So
// nothing is answered in the first event, and the controllers agree on a data length in the third one.
static void answer_questions(struct connection *connection) {
  if (connection->events < 2) return;
  for (int role = CENTRAL; role <= PERIPHERAL; role++) {
    struct side *side = &connection->sides[role];
    if (side->awaits_features) report_remote_features(side);
    if (side->awaits_version) report_remote_version(side);
    side->awaits_features = side->awaits_version = false;
  }
  if (connection->awaits_data_length && connection->events >= 3) lengthen_pdus(connection);
}

// Sends a packet to the host, 5.4.2, in fragments that are as long as the controller's buffers.
static void deliver(struct side *side, const struct acl_packet *packet) {
  bool is_first = packet->boundary != CONTINUING;
  int start = 0;
  do {
    int length = packet->length - start;
    if (length > side->controller->acl_length) length = side->controller->acl_length;
    int handle = side->handle | (is_first ? FIRST_FLUSHABLE : CONTINUING) << 12;
    uint8_t bytes[ACL_DATA_HEADER + ACL_DATA_LENGTH] = {ACL_DATA_PACKET, handle, handle >> 8, length, length >> 8};
    memcpy(bytes + ACL_DATA_HEADER, packet->data + start, length);
    send_bytes(side->controller, bytes, ACL_DATA_HEADER + length);
    start += length;
    is_first = false;
  } while (start < packet->length);
}

// Carries what one side sends in a connection event. The next event carries the rest.
static void carry_data(struct side *side) {
  int pdus = pdus_per_event, completed = 0;
  while (pdus > 0 && side->first) {
    struct acl_packet *packet = side->first;
    for (; pdus > 0 && packet->carried < packet->length; pdus--) packet->carried += side->pdu_length;
    if (packet->carried < packet->length) break;
    deliver(side->peer, packet);
    side->first = packet->next;
    if (!side->first) side->last = NULL;
    free(packet);
    completed++;
  }
  if (completed > 0) report_completed_packets(side->controller, side->handle, completed);
}

static void hold_connection_event(struct connection *connection, double time) {
  connection->heard = time;
  connection->events++;
  if (connection->update_event > 0 && connection->events >= connection->update_event) take_new_parameters(connection);
  answer_questions(connection);
  carry_data(&connection->sides[CENTRAL]);
  carry_data(&connection->sides[PERIPHERAL]);
  struct side *terminator = connection->terminator;
  if (!terminator) return;
  end_side(terminator->peer, connection->reason);
  end_side(terminator, CONNECTION_TERMINATED_BY_LOCAL_HOST);
}

// A connection ends when a side hears nothing for the supervision timeout, or for six intervals if it has never heard
// anything: volume 6, part B, 4.5.2.
static void miss_connection_event(struct connection *connection, double time) {
  bool is_established = connection->events > 0;
  double timeout = connection->parameters.timeout * timeout_unit;
  if (!is_established) timeout = 6 * connection->parameters.interval * interval_unit;
  if (time - connection->heard < timeout) return;
  for (int role = CENTRAL; role <= PERIPHERAL; role++) {
    struct side *side = &connection->sides[role];
    uint8_t reason = is_established ? CONNECTION_TIMEOUT : CONNECTION_FAILED_TO_BE_ESTABLISHED;
    end_side(side, side == connection->terminator ? CONNECTION_TERMINATED_BY_LOCAL_HOST : reason);
  }
}

static void play_connection(struct connection *connection) {
  struct side *central = &connection->sides[CENTRAL], *peripheral = &connection->sides[PERIPHERAL];
  double time = now();
  bool has_both = central->handle >= 0 && peripheral->handle >= 0;
  if (has_both && hears(peripheral->controller, central->controller)) {
    hold_connection_event(connection, time);
  } else {
    miss_connection_event(connection, time);
  }
  double interval = connection->parameters.interval * interval_unit;
  connection->next += interval;
  // The program leaves out the events that it was too late for.
  if (connection->next < time) connection->next = time + interval * draw();
}

// --- Advertising ---

static struct advertising_set *find_set(struct controller *c, uint8_t handle) {
  for (int i = 0; i < ADVERTISING_SETS; i++)
    if (c->sets[i].exists && c->sets[i].is_extended && c->sets[i].handle == handle) return &c->sets[i];
  return NULL;
}

static struct advertising_set *make_set(struct controller *c, uint8_t handle) {
  for (int i = 0; i < c->max_sets; i++) {
    if (c->sets[i].exists) continue;
    c->sets[i] = (struct advertising_set){.exists = true, .is_extended = true, .handle = handle};
    return &c->sets[i];
  }
  return NULL;
}

// A host that leaves out LE Set Advertising Parameters gets that command's defaults: 7.8.5.
static struct advertising_set *legacy_set(struct controller *c) {
  struct advertising_set *set = &c->sets[0];
  if (set->exists) return set;
  *set = (struct advertising_set){
      .exists = true,
      .properties = LEGACY_PDU | SCANNABLE | CONNECTABLE,
      .interval = 0x0800 * advertising_unit,
  };
  return set;
}

// Returns an error code if the set cannot be enabled now.
static uint8_t examine_set(const struct controller *c, const struct advertising_set *set) {
  if (set->properties & CONNECTABLE) {
    int count = count_connections(c);
    if (count >= c->max_connections) return CONNECTION_LIMIT_EXCEEDED;
    if (c->is_lean && count > 0) return COMMAND_DISALLOWED;
  }
  bool has_random_address = set->is_extended ? set->has_random_address : c->has_random_address;
  if ((set->own_address_type & 1) && !has_random_address) return INVALID_HCI_COMMAND_PARAMETERS;
  return SUCCESS;
}

static void enable_set(struct advertising_set *set, double duration, int max_events) {
  set->is_enabled = true;
  set->events = 0;
  set->max_events = max_events;
  set->next = now() + draw() * advertising_delay;
  set->until = duration > 0 ? now() + duration : INFINITY;
}

// LE Advertising Set Terminated, 7.7.65.18, with the handle of the connection that has ended the set, or 0.
static void end_set(struct controller *c, struct advertising_set *set, uint8_t status, int handle) {
  set->is_enabled = false;
  if (!set->is_extended) return;
  struct message message = le_event(HCI_LE_ADVERTISING_SET_TERMINATED);
  add_8(&message, status);
  add_8(&message, set->handle);
  add_16(&message, handle);
  add_8(&message, set->events);  // Num_Completed_Extended_Advertising_Events
  send_le_event(c, &message);
}

static int legacy_type(uint16_t properties) {
  if (properties & DIRECTED) return ADV_DIRECT_IND;
  if (properties & CONNECTABLE) return ADV_IND;
  return properties & SCANNABLE ? ADV_SCAN_IND : ADV_NONCONN_IND;
}

// Says whether the scanner filters duplicates and has reported such a PDU before.
static bool is_duplicate(struct scanner *scanner, const struct address *address, uint8_t type) {
  if (!scanner->filters_duplicates) return false;
  for (int i = 0; i < scanner->reported_count; i++)
    if (is_same(&scanner->reported[i].address, address) && scanner->reported[i].type == type) return true;
  if (scanner->reported_count < REMEMBERED) {
    scanner->reported[scanner->reported_count].address = *address;
    scanner->reported[scanner->reported_count++].type = type;
  }
  return false;
}

// LE Extended Advertising Report: 7.7.65.13.
static void report_extended(struct controller *c, const struct advertising_set *set, const struct address *address,
                            bool is_response, int level) {
  const struct advertising_data *data = is_response ? &set->scan_response : &set->data;
  bool is_legacy = set->properties & LEGACY_PDU;
  int type = set->properties & (LEGACY_PDU | DIRECTED | SCANNABLE | CONNECTABLE);
  struct message message = le_event(HCI_LE_EXTENDED_ADVERTISING_REPORT);
  add_8(&message, 1);  // Num_Reports
  add_16(&message, is_response ? type | SCAN_RESPONSE : type);
  add_address(&message, address);
  add_8(&message, LE_1M);                          // Primary_PHY
  add_8(&message, is_legacy ? 0 : LE_1M);          // Secondary_PHY
  add_8(&message, is_legacy ? NO_SID : set->sid);  // Advertising_SID
  add_8(&message, NO_TX_POWER);                    // TX_Power
  add_8(&message, level);                          // RSSI
  add_16(&message, 0);                             // Periodic_Advertising_Interval
  add_zeros(&message, 7);                          // Direct_Address_Type, Direct_Address
  add_8(&message, data->length);
  add_bytes(&message, data->bytes, data->length);
  send_le_event(c, &message);
}

// LE Advertising Report: 7.7.65.2.
static void report_legacy(struct controller *c, const struct advertising_set *set, const struct address *address,
                          bool is_response, int level) {
  const struct advertising_data *data = is_response ? &set->scan_response : &set->data;
  struct message message = le_event(HCI_LE_ADVERTISING_REPORT);
  add_8(&message, 1);  // Num_Reports
  add_8(&message, is_response ? SCAN_RSP : legacy_type(set->properties));
  add_address(&message, address);
  add_8(&message, data->length);
  add_bytes(&message, data->bytes, data->length);
  add_8(&message, level);  // RSSI
  send_le_event(c, &message);
}

static void report(struct controller *listener, const struct controller *sender, const struct advertising_set *set,
                   bool is_response) {
  struct scanner *scanner = &listener->scanner;
  struct address address = set_address(sender, set);
  if (scanner->filters_others && !is_accepted(listener, &address)) return;
  if (is_duplicate(scanner, &address, is_response ? SCAN_RSP : legacy_type(set->properties))) return;
  listener->report_count++;
  int level = rssi(listener, sender);
  (scanner->is_extended ? report_extended : report_legacy)(listener, set, &address, is_response, level);
}

// Says whether the initiator asks for a connection and the advertiser takes it.
static bool agree(const struct controller *initiator, const struct controller *advertiser,
                  const struct advertising_set *set) {
  if (!initiator->initiator.is_enabled || !(set->properties & CONNECTABLE)) return false;
  if (draw() > initiator->initiator.chance) return false;
  struct address central = initiator_address(initiator), peripheral = set_address(advertiser, set);
  bool is_wanted = initiator->initiator.takes_accept_list ? is_accepted(initiator, &peripheral)
                                                          : is_same(&initiator->initiator.peer, &peripheral);
  if (!is_wanted) return false;
  if ((set->properties & DIRECTED) && !is_same(&set->peer, &central)) return false;
  return !set->refuses_others || is_accepted(advertiser, &central);
}

// Tells both hosts of the connection, and the advertiser's host that the connection has ended the set.
static void begin_connection(struct connection *connection, struct advertising_set *set) {
  struct side *central = &connection->sides[CENTRAL], *peripheral = &connection->sides[PERIPHERAL];
  central->controller->initiator.is_enabled = false;
  report_connection(central->controller, SUCCESS, central);
  report_connection(peripheral->controller, SUCCESS, peripheral);
  if (drop_connection == central->controller->number) {
    separate(central->controller->number, peripheral->controller->number, true);
    drop_connection = -1;
  }
  end_set(peripheral->controller, set, SUCCESS, peripheral->handle);
}

// Plays an advertising event: each controller that hears it may connect, or report it.
static void advertise(struct controller *c, struct advertising_set *set) {
  bool is_legacy = set->properties & LEGACY_PDU;
  set->events++;
  for (int i = 0; i < controller_count; i++) {
    struct controller *listener = &controllers[i];
    if (listener == c || listener->host < 0 || !hears(listener, c)) continue;
    struct connection *connection = agree(listener, c, set) ? connect_controllers(listener, c, set) : NULL;
    if (connection) {
      begin_connection(connection, set);
      return;
    }
    struct scanner *scanner = &listener->scanner;
    if (!scanner->is_enabled || draw() > scanner->chance || !(is_legacy || scanner->is_extended)) continue;
    report(listener, c, set, false);
    if (scanner->is_active && (set->properties & SCANNABLE)) report(listener, c, set, true);
  }
  if (set->max_events > 0 && set->events >= set->max_events) end_set(c, set, LIMIT_REACHED, 0);
}

static void play_set(struct controller *c, struct advertising_set *set, double time) {
  if (set->until <= time) {
    end_set(c, set, ADVERTISING_TIMEOUT, 0);
  } else if (set->next <= time) {
    advertise(c, set);
    set->next += set->interval + draw() * advertising_delay;
    // The program leaves out the events that it was too late for.
    if (set->next < time) set->next = time + 1e-3;
  }
}

// --- Parameters and answers of a command ---

static int take_8(struct controller *c) {
  return c->parameters.next < c->parameters.end ? *c->parameters.next++ : 0;
}

static int take_16(struct controller *c) {
  int low = take_8(c);
  return low | take_8(c) << 8;
}

static int take_24(struct controller *c) {
  int low = take_16(c);
  return low | take_8(c) << 16;
}

static uint64_t take_64(struct controller *c) {
  uint64_t value = 0;
  for (int i = 0; i < 8; i++) value |= (uint64_t)take_8(c) << 8 * i;
  return value;
}

static void take_bytes(struct controller *c, uint8_t *bytes, int count) {
  for (int i = 0; i < count; i++) bytes[i] = take_8(c);
}

static struct address take_address(struct controller *c) {
  struct address address = {.type = take_8(c)};
  take_bytes(c, address.bytes, 6);
  return address;
}

static void skip(struct controller *c, int count) {
  while (count-- > 0) take_8(c);
}

// Takes an interval and a window, and returns the probability that a PDU is heard.
static double take_chance(struct controller *c) {
  int interval = take_16(c), window = take_16(c);
  return interval > 0 ? (double)window / interval : 1;
}

static void answer_8(struct controller *c, int value) { add_8(&c->answer, value); }

static void answer_16(struct controller *c, int value) { add_16(&c->answer, value); }

static void answer_zeros(struct controller *c, int count) { add_zeros(&c->answer, count); }

// --- Commands ---
//
// A command's function takes the parameters in their order, answers with the return parameters in their order, but for
// the Status, and returns the Status.

// 7.3.2. The peers learn of it by their supervision timeouts.
static uint8_t reset(struct controller *c) {
  for (int i = 0; i < CONNECTIONS; i++) {
    struct side *side = side_of(c, &connections[i]);
    if (side) abandon(side);
  }
  c->event_mask = 0x00001fffffffffff;  // 7.3.1
  c->le_event_mask = 0x1f;             // 7.8.1
  c->used_legacy = c->used_extended = c->has_random_address = false;
  c->suggested_length = DATA_PDU_SHORT;
  c->accept_list_length = 0;
  memset(c->random_address, 0, sizeof c->random_address);
  memset(c->sets, 0, sizeof c->sets);
  c->scanner = (struct scanner){.chance = 1};  // 7.8.10: the window is as long as the interval
  c->initiator = (struct initiator){0};
  return SUCCESS;
}

static uint8_t set_event_mask(struct controller *c) {  // 7.3.1
  c->event_mask = take_64(c);
  return SUCCESS;
}

static uint8_t le_set_event_mask(struct controller *c) {  // 7.8.1
  c->le_event_mask = take_64(c);
  return SUCCESS;
}

// --- Commands that ask what the controller is ---

static uint8_t read_local_version_information(struct controller *c) {  // 7.4.1
  answer_8(c, version(c));
  answer_16(c, 0);  // HCI_Subversion
  answer_8(c, version(c));
  answer_16(c, NO_COMPANY);
  answer_16(c, 0);  // LMP_Subversion
  return SUCCESS;
}

// LMP features: volume 2, part C, 3.3.
static void answer_lmp_features(struct controller *c) {
  enum { BR_EDR_NOT_SUPPORTED = 0x20, LE_SUPPORTED = 0x40, SECURE_SIMPLE_PAIRING = 0x08, EXTENDED_FEATURES = 0x80 };
  answer_8(c, c->is_dual ? 0xbf : 0);  // BR/EDR's packets, modes and the like, as most adapters have them
  answer_8(c, c->is_dual ? 0xfe : 0);
  answer_8(c, c->is_dual ? 0x8f : 0);
  answer_8(c, 0);
  answer_8(c, c->is_dual ? LE_SUPPORTED : LE_SUPPORTED | BR_EDR_NOT_SUPPORTED);
  answer_8(c, 0);
  answer_8(c, c->is_dual ? SECURE_SIMPLE_PAIRING : 0);
  answer_8(c, EXTENDED_FEATURES);
}

static uint8_t read_local_supported_features(struct controller *c) {  // 7.4.3
  answer_lmp_features(c);
  return SUCCESS;
}

static uint8_t read_local_extended_features(struct controller *c) {  // 7.4.4
  enum { LE_SUPPORTED_HOST = 0x02 };
  int page = take_8(c);
  answer_8(c, page);
  answer_8(c, 1);  // Max_Page_Number
  if (page == 0) {
    answer_lmp_features(c);
  } else {
    answer_8(c, page == 1 ? LE_SUPPORTED_HOST : 0);
    answer_zeros(c, 7);
  }
  return SUCCESS;
}

static uint8_t read_buffer_size(struct controller *c) {  // 7.4.5: without BR/EDR there are LE's buffers alone
  answer_16(c, c->is_dual ? 960 : 0);  // ACL_Data_Packet_Length
  answer_8(c, c->is_dual ? 64 : 0);    // Synchronous_Data_Packet_Length
  answer_16(c, c->is_dual ? 8 : 0);    // Total_Num_ACL_Data_Packets
  answer_16(c, 0);                     // Total_Num_Synchronous_Data_Packets
  return SUCCESS;
}

static uint8_t read_bd_addr(struct controller *c) {  // 7.4.6
  add_bytes(&c->answer, c->public_address, 6);
  return SUCCESS;
}

static uint8_t read_number_of_supported_iac(struct controller *c) {  // 7.3.43
  answer_8(c, 1);
  return SUCCESS;
}

static uint8_t write_le_host_support(struct controller *c) {  // 7.3.79: no effect
  (void)c;
  return SUCCESS;
}

static uint8_t le_read_buffer_size(struct controller *c) {  // 7.8.2
  answer_16(c, c->acl_length);
  answer_8(c, c->acl_packets);
  return SUCCESS;
}

static uint8_t le_read_local_supported_features(struct controller *c) {  // 7.8.3
  add_le_features(&c->answer, c);
  return SUCCESS;
}

static uint8_t le_read_supported_states(struct controller *c) {  // 7.8.27: all 42 combinations
  for (int i = 0; i < 5; i++) answer_8(c, 0xff);
  answer_8(c, 0x03);
  answer_zeros(c, 2);
  return SUCCESS;
}

static uint8_t le_rand(struct controller *c) {  // 7.8.23
  for (int i = 0; i < 8; i++) answer_8(c, draw() * 256);
  return SUCCESS;
}

// --- Commands for addresses ---

static uint8_t le_set_random_address(struct controller *c) {  // 7.8.4
  bool advertises = !c->sets[0].is_extended && c->sets[0].is_enabled;
  if (advertises || c->scanner.is_enabled || c->initiator.is_enabled) return COMMAND_DISALLOWED;
  take_bytes(c, c->random_address, 6);
  c->has_random_address = true;
  return SUCCESS;
}

static uint8_t le_read_filter_accept_list_size(struct controller *c) {  // 7.8.14
  answer_8(c, ACCEPT_LIST_SIZE);
  return SUCCESS;
}

static uint8_t le_clear_filter_accept_list(struct controller *c) {  // 7.8.15
  c->accept_list_length = 0;
  return SUCCESS;
}

static uint8_t le_add_device_to_filter_accept_list(struct controller *c) {  // 7.8.16
  struct address address = take_address(c);
  if (is_accepted(c, &address)) return SUCCESS;
  if (c->accept_list_length == ACCEPT_LIST_SIZE) return MEMORY_CAPACITY_EXCEEDED;
  c->accept_list[c->accept_list_length++] = address;
  return SUCCESS;
}

static uint8_t le_remove_device_from_filter_accept_list(struct controller *c) {  // 7.8.17
  struct address address = take_address(c);
  for (int i = 0; i < c->accept_list_length; i++)
    if (is_same(&c->accept_list[i], &address)) c->accept_list[i] = c->accept_list[--c->accept_list_length];
  return SUCCESS;
}

// --- Legacy advertising ---

static uint8_t le_set_advertising_parameters(struct controller *c) {  // 7.8.5
  static const uint16_t properties[] = {
      LEGACY_PDU | SCANNABLE | CONNECTABLE,                   // ADV_IND
      LEGACY_PDU | HIGH_DUTY_CYCLE | DIRECTED | CONNECTABLE,  // ADV_DIRECT_IND, high duty cycle
      LEGACY_PDU | SCANNABLE,                                 // ADV_SCAN_IND
      LEGACY_PDU,                                             // ADV_NONCONN_IND
      LEGACY_PDU | DIRECTED | CONNECTABLE,                    // ADV_DIRECT_IND, low duty cycle
  };
  struct advertising_set *set = legacy_set(c);
  if (set->is_enabled) return COMMAND_DISALLOWED;
  int interval = take_16(c);
  skip(c, 2);  // Advertising_Interval_Max
  unsigned type = take_8(c);
  if (interval < ADVERTISING_INTERVAL_LEAST || type > 4) return INVALID_HCI_COMMAND_PARAMETERS;
  set->interval = interval * advertising_unit;
  set->properties = properties[type];
  set->own_address_type = take_8(c);
  set->peer = take_address(c);
  skip(c, 1);  // Advertising_Channel_Map
  set->refuses_others = take_8(c) & 2;
  return SUCCESS;
}

static uint8_t take_legacy_data(struct controller *c, struct advertising_data *data) {
  int length = take_8(c);
  if (length > LEGACY_DATA_LENGTH) return INVALID_HCI_COMMAND_PARAMETERS;
  data->length = length;
  take_bytes(c, data->bytes, length);
  return SUCCESS;
}

static uint8_t le_set_advertising_data(struct controller *c) {  // 7.8.7
  return take_legacy_data(c, &legacy_set(c)->data);
}

static uint8_t le_set_scan_response_data(struct controller *c) {  // 7.8.8
  return take_legacy_data(c, &legacy_set(c)->scan_response);
}

static uint8_t le_set_advertising_enable(struct controller *c) {  // 7.8.9
  struct advertising_set *set = legacy_set(c);
  bool enable = take_8(c);
  uint8_t status = enable ? examine_set(c, set) : SUCCESS;
  if (status != SUCCESS) return status;
  if (enable && !set->is_enabled) enable_set(set, 0, 0);
  set->is_enabled = enable;
  return SUCCESS;
}

static uint8_t le_read_advertising_physical_channel_tx_power(struct controller *c) {  // 7.8.6
  answer_8(c, 0);  // dBm
  return SUCCESS;
}

// --- Extended advertising ---

static uint8_t le_set_advertising_set_random_address(struct controller *c) {  // 7.8.52
  struct advertising_set *set = find_set(c, take_8(c));
  if (!set) return UNKNOWN_ADVERTISING_IDENTIFIER;
  if (set->is_enabled && (set->properties & CONNECTABLE)) return COMMAND_DISALLOWED;
  take_bytes(c, set->random_address, 6);
  set->has_random_address = true;
  return SUCCESS;
}

static uint8_t le_set_extended_advertising_parameters(struct controller *c) {  // 7.8.53
  uint8_t handle = take_8(c);
  uint16_t properties = take_16(c);
  int interval = take_24(c);
  if (interval < ADVERTISING_INTERVAL_LEAST) return INVALID_HCI_COMMAND_PARAMETERS;
  struct advertising_set *set = find_set(c, handle);
  if (!set) set = make_set(c, handle);
  if (!set) return MEMORY_CAPACITY_EXCEEDED;
  if (set->is_enabled) return COMMAND_DISALLOWED;
  set->properties = properties;
  set->interval = interval * advertising_unit;
  skip(c, 4);  // Primary_Advertising_Interval_Max, Primary_Advertising_Channel_Map
  set->own_address_type = take_8(c);
  set->peer = take_address(c);
  set->refuses_others = take_8(c) & 2;
  skip(c, 4);  // Advertising_TX_Power, Primary_Advertising_PHY, Secondary_Advertising_Max_Skip and _PHY
  set->sid = take_8(c);
  answer_8(c, 0);  // Selected_TX_Power, dBm
  return SUCCESS;
}

// All of the data comes in one command: Operation and Fragment_Preference have no effect.
static uint8_t take_extended_data(struct controller *c, struct advertising_set *set, struct advertising_data *data) {
  skip(c, 2);
  int length = take_8(c);
  if ((set->properties & LEGACY_PDU) && length > LEGACY_DATA_LENGTH) return INVALID_HCI_COMMAND_PARAMETERS;
  if (length > REPORTED_DATA_LENGTH) return MEMORY_CAPACITY_EXCEEDED;
  data->length = length;
  take_bytes(c, data->bytes, length);
  return SUCCESS;
}

static uint8_t le_set_extended_advertising_data(struct controller *c) {  // 7.8.54
  struct advertising_set *set = find_set(c, take_8(c));
  return set ? take_extended_data(c, set, &set->data) : UNKNOWN_ADVERTISING_IDENTIFIER;
}

static uint8_t le_set_extended_scan_response_data(struct controller *c) {  // 7.8.55
  struct advertising_set *set = find_set(c, take_8(c));
  return set ? take_extended_data(c, set, &set->scan_response) : UNKNOWN_ADVERTISING_IDENTIFIER;
}

// 7.8.56. An error in one set leaves all of them as they were.
static uint8_t le_set_extended_advertising_enable(struct controller *c) {
  bool enable = take_8(c);
  int count = take_8(c);
  if (count == 0 && enable) return INVALID_HCI_COMMAND_PARAMETERS;
  for (int i = 0; count == 0 && i < ADVERTISING_SETS; i++) c->sets[i].is_enabled = false;

  struct parameters sets = c->parameters;
  for (int i = 0; i < count; i++) {
    struct advertising_set *set = find_set(c, take_8(c));
    skip(c, 3);  // Duration, Max_Extended_Advertising_Events
    uint8_t status = set ? SUCCESS : UNKNOWN_ADVERTISING_IDENTIFIER;
    if (set && enable) status = examine_set(c, set);
    if (status != SUCCESS) return status;
  }
  c->parameters = sets;
  for (int i = 0; i < count; i++) {
    struct advertising_set *set = find_set(c, take_8(c));
    int duration = take_16(c), max_events = take_8(c);
    set->is_enabled = false;
    if (enable) enable_set(set, duration * timeout_unit, max_events);
  }
  return SUCCESS;
}

static uint8_t le_read_maximum_advertising_data_length(struct controller *c) {  // 7.8.57
  answer_16(c, LEGACY_DATA_LENGTH);  // the least that the specification allows
  return SUCCESS;
}

static uint8_t le_read_number_of_supported_advertising_sets(struct controller *c) {  // 7.8.58
  answer_8(c, c->max_sets);
  return SUCCESS;
}

static uint8_t le_remove_advertising_set(struct controller *c) {  // 7.8.59
  struct advertising_set *set = find_set(c, take_8(c));
  if (!set) return UNKNOWN_ADVERTISING_IDENTIFIER;
  if (set->is_enabled) return COMMAND_DISALLOWED;
  set->exists = false;
  return SUCCESS;
}

static uint8_t le_clear_advertising_sets(struct controller *c) {  // 7.8.60
  for (int i = 0; i < ADVERTISING_SETS; i++)
    if (c->sets[i].is_enabled) return COMMAND_DISALLOWED;
  for (int i = 0; i < ADVERTISING_SETS; i++) c->sets[i].exists = false;
  return SUCCESS;
}

// --- Scanning ---

static uint8_t le_set_scan_parameters(struct controller *c) {  // 7.8.10
  if (c->scanner.is_enabled) return COMMAND_DISALLOWED;
  c->scanner.is_active = take_8(c);
  c->scanner.chance = take_chance(c);
  c->scanner.own_address_type = take_8(c);
  c->scanner.filters_others = take_8(c) & 1;
  return SUCCESS;
}

static uint8_t le_set_extended_scan_parameters(struct controller *c) {  // 7.8.64, by the first PHY's parameters
  if (c->scanner.is_enabled) return COMMAND_DISALLOWED;
  c->scanner.own_address_type = take_8(c);
  c->scanner.filters_others = take_8(c) & 1;
  skip(c, 1);  // Scanning_PHYs
  c->scanner.is_active = take_8(c);
  c->scanner.chance = take_chance(c);
  return SUCCESS;
}

static uint8_t enable_scanner(struct controller *c, bool enable, bool filters_duplicates, bool is_extended) {
  struct scanner *scanner = &c->scanner;
  if (enable && c->is_lean && c->initiator.is_enabled) return COMMAND_DISALLOWED;
  if (enable && (scanner->own_address_type & 1) && !c->has_random_address) return INVALID_HCI_COMMAND_PARAMETERS;
  scanner->is_extended = is_extended;
  scanner->filters_duplicates = filters_duplicates;
  scanner->reported_count = 0;
  scanner->is_enabled = enable;
  return SUCCESS;
}

static uint8_t le_set_scan_enable(struct controller *c) {  // 7.8.11
  bool enable = take_8(c), filters_duplicates = take_8(c);
  if (enable && c->scanner.is_enabled) return COMMAND_DISALLOWED;
  return enable_scanner(c, enable, filters_duplicates, false);
}

static uint8_t le_set_extended_scan_enable(struct controller *c) {  // 7.8.65; Duration and Period have no effect
  bool enable = take_8(c), filters_duplicates = take_8(c);
  return enable_scanner(c, enable, filters_duplicates, true);
}

// --- Making connections ---

static void take_connection_parameters(struct controller *c, struct initiator *initiator) {
  skip(c, 2);  // Connection_Interval_Min
  initiator->parameters.interval = take_16(c);
  initiator->parameters.latency = take_16(c);
  initiator->parameters.timeout = take_16(c);
}

static uint8_t start_initiator(struct controller *c, struct initiator initiator) {
  if (c->initiator.is_enabled) return COMMAND_DISALLOWED;
  if (count_connections(c) >= c->max_connections) return CONNECTION_LIMIT_EXCEEDED;
  if (c->is_lean && c->scanner.is_enabled) return COMMAND_DISALLOWED;
  if ((initiator.own_address_type & 1) && !c->has_random_address) return INVALID_HCI_COMMAND_PARAMETERS;
  if (drop_next == c->number) {
    separate(drop_next, drop_next_peer, true);
    drop_next = -1;
  }
  const uint8_t *peer = initiator.peer.bytes;
  note("%d initiating %s own type %d peer type %d %02x:%02x:%02x:%02x:%02x:%02x", c->number,
       initiator.takes_accept_list ? "accept list" : "direct", initiator.own_address_type, initiator.peer.type, peer[5],
       peer[4], peer[3], peer[2], peer[1], peer[0]);
  // Peer_Address_Type 2 and 3 are identities, whose addresses are on the air as they are.
  initiator.peer.type &= 1;
  initiator.is_enabled = true;
  c->initiator = initiator;
  return SUCCESS;
}

static uint8_t le_create_connection(struct controller *c) {  // 7.8.12
  struct initiator initiator = {.chance = take_chance(c)};
  initiator.takes_accept_list = take_8(c);
  initiator.peer = take_address(c);
  initiator.own_address_type = take_8(c);
  take_connection_parameters(c, &initiator);
  return start_initiator(c, initiator);
}

static uint8_t le_extended_create_connection(struct controller *c) {  // 7.8.66, by the first PHY's parameters
  struct initiator initiator = {.takes_accept_list = take_8(c)};
  initiator.own_address_type = take_8(c);
  initiator.peer = take_address(c);
  skip(c, 1);  // Initiating_PHYs
  initiator.chance = take_chance(c);
  take_connection_parameters(c, &initiator);
  return start_initiator(c, initiator);
}

static uint8_t le_create_connection_cancel(struct controller *c) {  // 7.8.13
  if (!c->initiator.is_enabled) return COMMAND_DISALLOWED;
  c->initiator.is_enabled = false;
  c->initiator.was_cancelled = true;
  return SUCCESS;
}

// --- Commands for a connection ---

static uint8_t disconnect(struct controller *c) {  // 7.1.6
  struct side *side = find_side(c, take_16(c));
  if (!side) return UNKNOWN_CONNECTION_IDENTIFIER;
  if (side->connection->terminator) return COMMAND_DISALLOWED;
  side->connection->terminator = side;
  side->connection->reason = take_8(c);
  return SUCCESS;
}

static uint8_t read_remote_version_information(struct controller *c) {  // 7.1.23
  struct side *side = find_side(c, take_16(c));
  if (!side) return UNKNOWN_CONNECTION_IDENTIFIER;
  side->awaits_version = true;
  return SUCCESS;
}

static uint8_t le_read_remote_features(struct controller *c) {  // 7.8.21
  struct side *side = find_side(c, take_16(c));
  if (!side) return UNKNOWN_CONNECTION_IDENTIFIER;
  side->awaits_features = true;
  return SUCCESS;
}

// 7.8.18. The new parameters hold from the sixth event on: volume 6, part B, 5.1.1.
static uint8_t le_connection_update(struct controller *c) {
  struct side *side = find_side(c, take_16(c));
  if (!side) return UNKNOWN_CONNECTION_IDENTIFIER;
  struct connection *connection = side->connection;
  connection->new_parameters.interval = take_16(c);
  skip(c, 2);  // Connection_Interval_Max
  connection->new_parameters.latency = take_16(c);
  connection->new_parameters.timeout = take_16(c);
  connection->update_event = connection->events + 6;
  return SUCCESS;
}

static uint8_t read_rssi(struct controller *c) {  // 7.5.4
  int handle = take_16(c);
  struct side *side = find_side(c, handle);
  answer_16(c, handle);
  answer_8(c, side ? rssi(c, side->peer->controller) : 0);
  return side ? SUCCESS : UNKNOWN_CONNECTION_IDENTIFIER;
}

static uint8_t read_transmit_power_level(struct controller *c) {  // 7.3.35
  answer_16(c, take_16(c));
  answer_8(c, 0);  // dBm
  return SUCCESS;
}

static uint8_t le_set_data_length(struct controller *c) {  // 7.8.33: long PDUs or short ones, and nothing between
  int handle = take_16(c), length = take_16(c);
  struct side *side = find_side(c, handle);
  answer_16(c, handle);
  if (!side) return UNKNOWN_CONNECTION_IDENTIFIER;
  bool is_possible = side->pdu_length == DATA_PDU_SHORT && side->peer->controller->has_data_length_extension;
  if (length > DATA_PDU_SHORT && is_possible) side->connection->awaits_data_length = true;
  return SUCCESS;
}

static uint8_t le_read_suggested_default_data_length(struct controller *c) {  // 7.8.34
  answer_16(c, c->suggested_length);
  answer_16(c, air_time(c->suggested_length));
  return SUCCESS;
}

static uint8_t le_write_suggested_default_data_length(struct controller *c) {  // 7.8.35
  c->suggested_length = take_16(c);
  return SUCCESS;
}

static uint8_t le_read_maximum_data_length(struct controller *c) {  // 7.8.46: to send, and to receive
  for (int direction = 0; direction < 2; direction++) {
    answer_16(c, DATA_PDU_LONG);
    answer_16(c, air_time(DATA_PDU_LONG));
  }
  return SUCCESS;
}

// A command that the controller does not know, and which a host expects a Command Status for.
static uint8_t refuse_command(struct controller *c) {
  (void)c;
  return UNKNOWN_HCI_COMMAND;
}

// --- The table of commands ---

static uint8_t read_local_supported_commands(struct controller *c);

// A controller that knows EXTENDED commands refuses them once the host has used a LEGACY one, and the other way round:
// 3.1.1. It knows DATA_LENGTH commands if it has that extension. A Command Status answers a command BY_STATUS, and
// another event says later how it ended; a Command Complete answers all others.
enum kind { GENERAL = 0, LEGACY = 1, EXTENDED = 2, DATA_LENGTH = 4, BY_STATUS = 8 };

// A command's bit of Supported_Commands: 6.27. Inquiry has the very first one, which is never set here.
#define BIT(octet, bit) ((octet) * 8 + (bit))
enum { NOT_LISTED = 0 };  // hosts send it all the same

static const struct command {
  uint16_t opcode;
  uint8_t kind;     // bits of `enum kind`
  uint16_t listed;  // BIT or NOT_LISTED
  uint8_t (*carry_out)(struct controller *);
} commands[] = {
    {HCI_RESET, GENERAL, BIT(5, 7), reset},
    {HCI_SET_EVENT_MASK, GENERAL, BIT(5, 6), set_event_mask},
    {HCI_LE_SET_EVENT_MASK, GENERAL, BIT(25, 0), le_set_event_mask},
    // What the controller is
    {HCI_READ_LOCAL_VERSION_INFORMATION, GENERAL, BIT(14, 3), read_local_version_information},
    {HCI_READ_LOCAL_SUPPORTED_COMMANDS, GENERAL, NOT_LISTED, read_local_supported_commands},
    {HCI_READ_LOCAL_SUPPORTED_FEATURES, GENERAL, BIT(14, 5), read_local_supported_features},
    {HCI_READ_LOCAL_EXTENDED_FEATURES, GENERAL, NOT_LISTED, read_local_extended_features},
    {HCI_READ_BUFFER_SIZE, GENERAL, NOT_LISTED, read_buffer_size},
    {HCI_READ_BD_ADDR, GENERAL, NOT_LISTED, read_bd_addr},
    {HCI_READ_NUMBER_OF_SUPPORTED_IAC, GENERAL, NOT_LISTED, read_number_of_supported_iac},
    {HCI_WRITE_LE_HOST_SUPPORT, GENERAL, BIT(24, 6), write_le_host_support},
    {HCI_LE_READ_BUFFER_SIZE, GENERAL, BIT(25, 1), le_read_buffer_size},
    {HCI_LE_READ_LOCAL_SUPPORTED_FEATURES, GENERAL, BIT(25, 2), le_read_local_supported_features},
    {HCI_LE_READ_SUPPORTED_STATES, GENERAL, BIT(28, 3), le_read_supported_states},
    {HCI_LE_RAND, GENERAL, BIT(27, 7), le_rand},
    // Addresses
    {HCI_LE_SET_RANDOM_ADDRESS, GENERAL, BIT(25, 4), le_set_random_address},
    {HCI_LE_READ_FILTER_ACCEPT_LIST_SIZE, GENERAL, BIT(26, 6), le_read_filter_accept_list_size},
    {HCI_LE_CLEAR_FILTER_ACCEPT_LIST, GENERAL, BIT(26, 7), le_clear_filter_accept_list},
    {HCI_LE_ADD_DEVICE_TO_FILTER_ACCEPT_LIST, GENERAL, BIT(27, 0), le_add_device_to_filter_accept_list},
    {HCI_LE_REMOVE_DEVICE_FROM_FILTER_ACCEPT_LIST, GENERAL, BIT(27, 1), le_remove_device_from_filter_accept_list},
    // Advertising
    {HCI_LE_SET_ADVERTISING_PARAMETERS, LEGACY, BIT(25, 5), le_set_advertising_parameters},
    {HCI_LE_READ_ADVERTISING_PHYSICAL_CHANNEL_TX_POWER, LEGACY, BIT(25, 6),
     le_read_advertising_physical_channel_tx_power},
    {HCI_LE_SET_ADVERTISING_DATA, LEGACY, BIT(25, 7), le_set_advertising_data},
    {HCI_LE_SET_SCAN_RESPONSE_DATA, LEGACY, BIT(26, 0), le_set_scan_response_data},
    {HCI_LE_SET_ADVERTISING_ENABLE, LEGACY, BIT(26, 1), le_set_advertising_enable},
    {HCI_LE_SET_ADVERTISING_SET_RANDOM_ADDRESS, EXTENDED, BIT(36, 1), le_set_advertising_set_random_address},
    {HCI_LE_SET_EXTENDED_ADVERTISING_PARAMETERS, EXTENDED, BIT(36, 2), le_set_extended_advertising_parameters},
    {HCI_LE_SET_EXTENDED_ADVERTISING_DATA, EXTENDED, BIT(36, 3), le_set_extended_advertising_data},
    {HCI_LE_SET_EXTENDED_SCAN_RESPONSE_DATA, EXTENDED, BIT(36, 4), le_set_extended_scan_response_data},
    {HCI_LE_SET_EXTENDED_ADVERTISING_ENABLE, EXTENDED, BIT(36, 5), le_set_extended_advertising_enable},
    {HCI_LE_READ_MAXIMUM_ADVERTISING_DATA_LENGTH, EXTENDED, BIT(36, 6), le_read_maximum_advertising_data_length},
    {HCI_LE_READ_NUMBER_OF_SUPPORTED_ADVERTISING_SETS, EXTENDED, BIT(36, 7),
     le_read_number_of_supported_advertising_sets},
    {HCI_LE_REMOVE_ADVERTISING_SET, EXTENDED, BIT(37, 0), le_remove_advertising_set},
    {HCI_LE_CLEAR_ADVERTISING_SETS, EXTENDED, BIT(37, 1), le_clear_advertising_sets},
    // Scanning
    {HCI_LE_SET_SCAN_PARAMETERS, LEGACY, BIT(26, 2), le_set_scan_parameters},
    {HCI_LE_SET_SCAN_ENABLE, LEGACY, BIT(26, 3), le_set_scan_enable},
    {HCI_LE_SET_EXTENDED_SCAN_PARAMETERS, EXTENDED, BIT(37, 5), le_set_extended_scan_parameters},
    {HCI_LE_SET_EXTENDED_SCAN_ENABLE, EXTENDED, BIT(37, 6), le_set_extended_scan_enable},
    // Connections
    {HCI_LE_CREATE_CONNECTION, LEGACY | BY_STATUS, BIT(26, 4), le_create_connection},
    {HCI_LE_EXTENDED_CREATE_CONNECTION, EXTENDED | BY_STATUS, BIT(37, 7), le_extended_create_connection},
    {HCI_LE_CREATE_CONNECTION_CANCEL, GENERAL, BIT(26, 5), le_create_connection_cancel},
    {HCI_DISCONNECT, BY_STATUS, BIT(0, 5), disconnect},
    {HCI_READ_REMOTE_VERSION_INFORMATION, BY_STATUS, BIT(2, 7), read_remote_version_information},
    {HCI_LE_READ_REMOTE_FEATURES, BY_STATUS, BIT(27, 5), le_read_remote_features},
    {HCI_LE_CONNECTION_UPDATE, BY_STATUS, BIT(27, 2), le_connection_update},
    {HCI_READ_RSSI, GENERAL, BIT(15, 5), read_rssi},
    {HCI_READ_TRANSMIT_POWER_LEVEL, GENERAL, NOT_LISTED, read_transmit_power_level},
    {HCI_LE_SET_DATA_LENGTH, DATA_LENGTH, BIT(33, 6), le_set_data_length},
    {HCI_LE_READ_SUGGESTED_DEFAULT_DATA_LENGTH, DATA_LENGTH, BIT(33, 7), le_read_suggested_default_data_length},
    {HCI_LE_WRITE_SUGGESTED_DEFAULT_DATA_LENGTH, DATA_LENGTH, BIT(34, 0), le_write_suggested_default_data_length},
    {HCI_LE_READ_MAXIMUM_DATA_LENGTH, DATA_LENGTH, BIT(35, 3), le_read_maximum_data_length},
    // What it refuses
    {HCI_INQUIRY, BY_STATUS, NOT_LISTED, refuse_command},
    {HCI_CREATE_CONNECTION, BY_STATUS, NOT_LISTED, refuse_command},
    {HCI_LE_ENABLE_ENCRYPTION, BY_STATUS, NOT_LISTED, refuse_command},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

// Commands of a kernel that starts, most of them for BR/EDR. They have no effect. The answer is the Status and a number
// of zeros.
static const struct formality {
  uint16_t opcode;
  int zeros;  // bytes
} formalities[] = {
    {HCI_WRITE_LOCAL_NAME, 0},
    {HCI_READ_LOCAL_NAME, 248},
    {HCI_WRITE_CONNECTION_ACCEPT_TIMEOUT, 0},
    {HCI_WRITE_SCAN_ENABLE, 0},
    {HCI_READ_CLASS_OF_DEVICE, 3},
    {HCI_WRITE_CLASS_OF_DEVICE, 0},
    {HCI_READ_VOICE_SETTING, 2},
    {HCI_READ_CURRENT_IAC_LAP, 4},
    {HCI_WRITE_EXTENDED_INQUIRY_RESPONSE, 0},
    {HCI_WRITE_SIMPLE_PAIRING_MODE, 0},
};
enum { FORMALITIES = sizeof formalities / sizeof *formalities };

static bool is_supported(const struct controller *c, const struct command *command) {
  if (command->kind & EXTENDED) return !c->is_bt4;
  return !(command->kind & DATA_LENGTH) || c->has_data_length_extension;
}

static uint8_t read_local_supported_commands(struct controller *c) {  // 7.4.2
  uint8_t octets[64] = {0};
  for (int i = 0; i < COMMANDS; i++) {
    int listed = commands[i].listed;
    if (listed != NOT_LISTED && is_supported(c, &commands[i])) octets[listed / 8] |= 1 << listed % 8;
  }
  add_bytes(&c->answer, octets, sizeof octets);
  return SUCCESS;
}

static const struct command *find_command(uint16_t opcode) {
  for (int i = 0; i < COMMANDS; i++)
    if (commands[i].opcode == opcode) return &commands[i];
  return NULL;
}

static uint8_t carry_out(struct controller *c, const struct command *command) {
  if (!is_supported(c, command)) return UNKNOWN_HCI_COMMAND;
  bool is_legacy = (command->kind & LEGACY) && !c->is_bt4;
  bool is_extended = command->kind & EXTENDED;
  if ((is_legacy && c->used_extended) || (is_extended && c->used_legacy)) return COMMAND_DISALLOWED;
  c->used_legacy |= is_legacy;
  c->used_extended |= is_extended;
  return command->carry_out(c);
}

static uint8_t observe_formality(struct controller *c, uint16_t opcode) {
  for (int i = 0; i < FORMALITIES; i++) {
    if (formalities[i].opcode != opcode) continue;
    answer_zeros(c, formalities[i].zeros);
    return SUCCESS;
  }
  return UNKNOWN_HCI_COMMAND;
}

static void note_command(const struct controller *c, uint16_t opcode, const uint8_t *parameters, int length) {
  enum { NOTED = 40 };
  char text[2 * NOTED + 1] = "";
  for (int i = 0; i < length && i < NOTED; i++) sprintf(text + 2 * i, "%02x", parameters[i]);
  note("%d cmd %04x %s", c->number, opcode, text);
}

static void handle_command(struct controller *c, uint16_t opcode, const uint8_t *parameters, int length) {
  c->command_count++;
  note_command(c, opcode, parameters, length);
  // Command Complete: 7.7.14.
  c->answer = event(HCI_COMMAND_COMPLETE);
  add_8(&c->answer, 1);  // Num_HCI_Command_Packets
  add_16(&c->answer, opcode);
  int status_at = c->answer.length;
  add_8(&c->answer, SUCCESS);

  c->parameters = (struct parameters){parameters, parameters + length};
  const struct command *command = find_command(opcode);
  uint8_t status = command ? carry_out(c, command) : observe_formality(c, opcode);
  if (command && (command->kind & BY_STATUS)) {
    send_command_status(c, opcode, status);
  } else {
    c->answer.bytes[status_at] = status;
    send_event(c, &c->answer);
  }
  if (status != SUCCESS) note("%d cmd %04x status %02x", c->number, opcode, status);
  if (status == UNKNOWN_HCI_COMMAND) note("%d cmd %04x UNKNOWN", c->number, opcode);
  // LE Create Connection Cancel has an event that follows its answer: 7.8.13.
  if (c->initiator.was_cancelled) report_connection(c, UNKNOWN_CONNECTION_IDENTIFIER, NULL);
  c->initiator.was_cancelled = false;
}

// --- Hosts ---

static int get_16(const uint8_t *bytes) { return bytes[0] | bytes[1] << 8; }

// An ACL data packet, 5.4.2; its header begins with handle and flags.
static void handle_acl_data(struct controller *c, const uint8_t *header, const uint8_t *data, int length) {
  int handle = get_16(header) & 0xfff, boundary = get_16(header) >> 12 & 3;
  struct side *side = find_side(c, handle);
  if (!side) {
    // The connection has ended, and the host does not know yet.
    note("%d acl for no connection %x", c->number, handle);
    report_completed_packets(c, handle, 1);
    return;
  }
  if (length > ACL_DATA_LENGTH || length > c->acl_length) note("%d ACL TOO LONG %d", c->number, length);
  struct acl_packet *packet = calloc(1, sizeof *packet);
  if (!packet) die("a packet", strerror(errno));
  packet->boundary = boundary;
  packet->length = length < ACL_DATA_LENGTH ? length : ACL_DATA_LENGTH;
  memcpy(packet->data, data, packet->length);
  if (side->last) {
    side->last->next = packet;
  } else {
    side->first = packet;
  }
  side->last = packet;
}

// Returns the length of the packet, 0 if some of it has yet to come, or -1 if it is not a packet that hosts send.
static int handle_packet(struct controller *c, const uint8_t *packet, int available) {
  int header;
  switch (packet[0]) {
  case COMMAND_PACKET: header = COMMAND_HEADER; break;
  case ACL_DATA_PACKET: header = ACL_DATA_HEADER; break;
  case VENDOR_PACKET: return available < VENDOR_LENGTH ? 0 : VENDOR_LENGTH;  // the kernel's answer to open_adapter
  default:
    note("%d desync %02x", c->number, packet[0]);
    return -1;
  }
  if (available < header) return 0;
  int length = packet[0] == COMMAND_PACKET ? packet[3] : get_16(packet + 3);
  if (available < header + length) return 0;
  if (packet[0] == COMMAND_PACKET) {
    handle_command(c, get_16(packet + 1), packet + header, length);
  } else {
    handle_acl_data(c, packet + 1, packet + header, length);
  }
  return header + length;
}

// Handles the packets that have arrived, and says whether the host is still there.
static bool receive(struct controller *c) {
  int room = sizeof c->received - c->received_length;
  int count = read(c->host, c->received + c->received_length, room);
  if (count <= 0) return count < 0 && (errno == EAGAIN || errno == EINTR);
  c->received_length += count;
  int start = 0, length = 1;
  while (start < c->received_length && length > 0) {
    length = handle_packet(c, c->received + start, c->received_length - start);
    if (length < 0) return false;
    start += length;
  }
  c->received_length -= start;
  memmove(c->received, c->received + start, c->received_length);
  return true;
}

static void accept_host(struct controller *c) {
  c->host = accept(c->listener, NULL, NULL);
  if (c->host < 0) return;
  fcntl(c->host, F_SETFL, O_NONBLOCK);
  c->received_length = 0;
  reset(c);
  note("%d host attached", c->number);
}

static void lose_host(struct controller *c) {
  note("%d host gone", c->number);
  close(c->host);
  c->host = -1;
  reset(c);
}

// --- Orders ---

static void note_state(void) {
  for (int i = 0; i < controller_count; i++) {
    const struct controller *c = &controllers[i];
    note("stat %d: commands %ld reports %ld scan %d init %d conns %d", i, c->command_count, c->report_count,
         c->scanner.is_enabled, c->initiator.is_enabled, count_connections(c));
    for (int j = 0; j < ADVERTISING_SETS; j++) {
      const struct advertising_set *set = &c->sets[j];
      if (!set->exists) continue;
      note("stat %d set %x on %d props %x len %d", i, set->handle, set->is_enabled, set->properties, set->data.length);
    }
  }
}

static void obey(const char *order) {
  char word[16] = "";
  int a = 0, b = 0, value = 0;
  int count = sscanf(order, "%15s %d %d %d", word, &a, &b, &value);
  note("control: %s", order);
  if (a < 0 || a >= PORTS || b < 0 || b >= PORTS) return;
  if (strcmp(word, "rssi") == 0 && count == 4) {
    paths[a][b].rssi = paths[b][a].rssi = value;
  } else if (strcmp(word, "loss") == 0 && count == 4) {
    paths[a][b].loss = paths[b][a].loss = value;
  } else if (strcmp(word, "far") == 0 && count == 3) {
    separate(a, b, true);
  } else if (strcmp(word, "near") == 0 && count == 3) {
    separate(a, b, false);
  } else if (strcmp(word, "dropnext") == 0 && count == 3) {
    drop_next = a;
    drop_next_peer = b;
  } else if (strcmp(word, "dropconn") == 0 && count == 2) {
    drop_connection = a;
  } else if (strcmp(word, "stat") == 0) {
    note_state();
  }
}

static void read_orders(int fifo) {
  char orders[4096];
  int length = read(fifo, orders, sizeof orders - 1);
  if (length <= 0) return;
  orders[length] = 0;
  for (char *order = strtok(orders, "\n"); order; order = strtok(NULL, "\n")) obey(order);
}

// --- Ports ---

static void listen_at(struct controller *c, const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (strlen(path) >= sizeof address.sun_path) die(path, "too long for a socket");
  strcpy(address.sun_path, path);
  unlink(path);
  c->listener = socket(AF_UNIX, SOCK_STREAM, 0);
  if (bind(c->listener, (struct sockaddr *)&address, sizeof address) || listen(c->listener, 4))
    die(path, strerror(errno));
  chmod(path, 0666);
}

// Makes an adapter of the kernel. The kernel says the adapter's number, and starts it. This function answers the
// commands of the start, so that adapters are numbered in the order of the ports.
static void open_adapter(struct controller *c) {
  const double startup = 0.35;  // seconds
  uint8_t request[2] = {VENDOR_PACKET, 0}, reply[8];
  c->host = open("/dev/vhci", O_RDWR | O_NONBLOCK);
  if (c->host < 0 || write(c->host, request, sizeof request) < 0) die("/dev/vhci", strerror(errno));
  int length = -1;
  for (int attempt = 0; attempt < 200 && length < 0; attempt++) {
    length = read(c->host, reply, sizeof reply);
    if (length < 0) usleep(5000);
  }
  if (length < VENDOR_LENGTH) die("/dev/vhci", "the kernel makes no adapter");
  fprintf(stderr, "air: port %d is hci%d\n", c->number, get_16(reply + 2));
  for (double end = now() + startup; now() < end;) {
    struct pollfd host = {c->host, POLLIN, 0};
    if (poll(&host, 1, 60) > 0 && !receive(c)) die("/dev/vhci", "the kernel has closed it");
  }
}

static void parse_address(const char *text, uint8_t *address) {
  unsigned bytes[6];
  if (sscanf(text, "%x:%x:%x:%x:%x:%x", bytes, bytes + 1, bytes + 2, bytes + 3, bytes + 4, bytes + 5) != 6)
    die(text, "not an address");
  for (int i = 0; i < 6; i++) address[i] = bytes[5 - i];
}

static int parse_number(const char *text, int least, int most) {
  char *end;
  long number = strtol(text, &end, 10);
  if (end == text || *end || number < least || number > most) die(text, "not a number that is possible there");
  return number;
}

static void set_option(struct controller *c, const char *name, const char *value) {
  if (strcmp(name, "addr") == 0) {
    parse_address(value, c->public_address);
  } else if (strcmp(name, "bt") == 0) {
    c->is_bt4 = parse_number(value, 4, 5) == 4;
  } else if (strcmp(name, "sets") == 0) {
    c->max_sets = parse_number(value, 1, ADVERTISING_SETS);
  } else if (strcmp(name, "conns") == 0) {
    c->max_connections = parse_number(value, 0, CONNECTIONS);
  } else if (strcmp(name, "mtu") == 0) {
    c->acl_length = parse_number(value, DATA_PDU_SHORT, ACL_DATA_LENGTH);
  } else if (strcmp(name, "bufs") == 0) {
    c->acl_packets = parse_number(value, 1, 255);
  } else if (strcmp(name, "pfeat") == 0) {
    c->has_features_4_1 = parse_number(value, 0, 1);
  } else if (strcmp(name, "dle") == 0) {
    c->has_data_length_extension = parse_number(value, 0, 1);
  } else if (strcmp(name, "dual") == 0) {
    c->is_dual = parse_number(value, 0, 1);
  } else if (strcmp(name, "lean") == 0) {
    c->is_lean = parse_number(value, 0, 1);
  } else {
    die(name, "a port has no such option");
  }
}

static void open_port(char *text) {
  if (controller_count == PORTS) die(text, "too many ports");
  struct controller *c = &controllers[controller_count];
  *c = (struct controller){
      .number = controller_count,
      .host = -1,
      .listener = -1,
      .has_features_4_1 = true,
      .has_data_length_extension = true,
      .max_sets = 4,
      .max_connections = 8,
      .acl_length = DATA_PDU_LONG,
      .acl_packets = 8,
      .public_address = {0x01 + controller_count, 0x00, 0x5e, 0xc0, 0x00, 0x02},
  };
  const char *kind = strtok(text, ",");
  for (char *name = strtok(NULL, ","); name; name = strtok(NULL, ",")) {
    char *value = strchr(name, '=');
    if (!value) die(name, "not NAME=VALUE");
    *value++ = 0;
    set_option(c, name, value);
  }
  reset(c);
  if (strcmp(kind, "vhci") == 0) {
    open_adapter(c);
  } else if (strncmp(kind, "unix:", 5) == 0) {
    listen_at(c, kind + 5);
  } else {
    die(kind, "neither vhci nor unix:PATH");
  }
  controller_count++;
}

// --- The program ---

// Plays what is due, and returns the time when something is due again.
static double play(void) {
  double time = now(), next = time + 0.5;
  for (int i = 0; i < controller_count; i++) {
    for (int j = 0; j < ADVERTISING_SETS; j++) {
      struct advertising_set *set = &controllers[i].sets[j];
      if (set->is_enabled) play_set(&controllers[i], set, time);
      if (set->is_enabled) next = fmin(next, set->next);
    }
  }
  for (int i = 0; i < CONNECTIONS; i++) {
    if (connections[i].exists && connections[i].next <= time) play_connection(&connections[i]);
    if (connections[i].exists) next = fmin(next, connections[i].next);
  }
  return next;
}

// Handles what hosts and orders say until that time.
static void wait_until(double time, int fifo) {
  struct pollfd awaited[PORTS + 1];
  for (int i = 0; i < controller_count; i++) {
    struct controller *c = &controllers[i];
    awaited[i] = (struct pollfd){c->host >= 0 ? c->host : c->listener, POLLIN, 0};
  }
  awaited[controller_count] = (struct pollfd){fifo, POLLIN, 0};
  double wait = fmax(time - now(), 0);
  struct timespec timeout = {.tv_sec = wait, .tv_nsec = (wait - floor(wait)) * 1e9};
  if (ppoll(awaited, controller_count + 1, &timeout, NULL) <= 0) return;
  for (int i = 0; i < controller_count; i++) {
    struct controller *c = &controllers[i];
    if (!awaited[i].revents) continue;
    if (c->host < 0) {
      accept_host(c);
    } else if (!receive(c)) {
      lose_host(c);
    }
  }
  if (awaited[controller_count].revents) read_orders(fifo);
}

static int make_fifo(const char *path) {
  unlink(path);
  int fifo = mkfifo(path, 0666) == 0 ? open(path, O_RDWR | O_NONBLOCK) : -1;
  if (fifo < 0) die(path, strerror(errno));
  return fifo;
}

static void open_log(const char *path) {
  log_file = fopen(path, "w");
  if (!log_file) die(path, strerror(errno));
  setlinebuf(log_file);
}

static void say_ready(const char *path) {
  FILE *file = fopen(path, "w");
  if (!file || fputs("ready\n", file) < 0 || fclose(file) != 0) die(path, strerror(errno));
}

static void end(int signal) {
  (void)signal;
  _exit(0);
}

int main(int count, char **arguments) {
  const char *ready = NULL, *orders = NULL;
  start_time = now();
  seed = 12345 ^ getpid();
  for (int i = 0; i < PORTS; i++)
    for (int j = 0; j < PORTS; j++) paths[i][j].rssi = -60;
  signal(SIGPIPE, SIG_IGN);
  signal(SIGTERM, end);
  signal(SIGINT, end);
  for (int i = 1; i < count; i++) {
    char *argument = arguments[i];
    if (strncmp(argument, "--", 2) != 0) {
      open_port(argument);
    } else if (i + 1 == count) {
      die(argument, "no such option, or its value is missing");
    } else if (strcmp(argument, "--ctl") == 0) {
      orders = arguments[++i];
    } else if (strcmp(argument, "--log") == 0) {
      open_log(arguments[++i]);
    } else if (strcmp(argument, "--ready") == 0) {
      ready = arguments[++i];
    } else if (strcmp(argument, "--ppe") == 0) {
      pdus_per_event = parse_number(arguments[++i], 1, 1000);
    } else if (strcmp(argument, "--seed") == 0) {
      seed = parse_number(arguments[++i], 0, 0x7fffffff);
    } else {
      die(argument, "no such option");
    }
  }
  int fifo = orders ? make_fifo(orders) : -1;
  if (ready) say_ready(ready);
  while (true) wait_until(play(), fifo);
}
