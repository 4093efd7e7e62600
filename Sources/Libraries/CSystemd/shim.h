#include <systemd/sd-bus.h>

// The library is not linked: it is loaded when needed. These are the types of its functions.
#define FUNCTION(name) typedef __typeof__(name) *name##_f
FUNCTION(sd_bus_open_system);
FUNCTION(sd_bus_close_unref);
FUNCTION(sd_bus_get_fd);
FUNCTION(sd_bus_process);
FUNCTION(sd_bus_send);
FUNCTION(sd_bus_message_new_method_call);
FUNCTION(sd_bus_message_set_auto_start);
FUNCTION(sd_bus_message_append_basic);
FUNCTION(sd_bus_message_open_container);
FUNCTION(sd_bus_message_close_container);
FUNCTION(sd_bus_message_enter_container);
FUNCTION(sd_bus_message_exit_container);
FUNCTION(sd_bus_message_read_basic);
FUNCTION(sd_bus_message_read_array);
FUNCTION(sd_bus_message_skip);
FUNCTION(sd_bus_message_get_path);
FUNCTION(sd_bus_message_get_sender);
FUNCTION(sd_bus_message_get_error);
FUNCTION(sd_bus_message_get_reply_cookie);
FUNCTION(sd_bus_message_is_signal);
FUNCTION(sd_bus_message_is_method_call);
FUNCTION(sd_bus_message_new_method_return);
FUNCTION(sd_bus_reply_method_errno);
FUNCTION(sd_bus_message_unref);
#undef FUNCTION
