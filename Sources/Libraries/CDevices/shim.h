// The kernel's interfaces to GPIO lines, I2C devices and watchdogs, as functions. Swift cannot call ioctl(2), which is
// variadic, or read the macros that name its requests. All functions return -1 and set errno if they fail.
#include <linux/gpio.h>
#include <linux/i2c-dev.h>
#include <linux/i2c.h>
#include <linux/magic.h>
#include <linux/watchdog.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>

// GPIO character devices, version 2 (Linux 5.10, Documentation/userspace-api/gpio/chardev.rst).

// The number of a chip's lines, and its label, which ends with a zero.
static inline int gpio_examine(int chip, char label[GPIO_MAX_NAME_SIZE]) {
  struct gpiochip_info info = {0};
  if (ioctl(chip, GPIO_GET_CHIPINFO_IOCTL, &info) == -1) return -1;
  memcpy(label, info.label, GPIO_MAX_NAME_SIZE);
  label[GPIO_MAX_NAME_SIZE - 1] = 0;
  return (int)info.lines;
}

// Requests a line as an input. The returned descriptor delivers its changes as events. The line is pulled to its
// inactive level if the chip can do that.
static inline int gpio_take_input(int chip, unsigned line, int is_active_low) {
  struct gpio_v2_line_request request = {0};
  request.offsets[0] = line;
  request.num_lines = 1;
  strcpy(request.consumer, "stepd");
  request.config.flags = GPIO_V2_LINE_FLAG_INPUT | GPIO_V2_LINE_FLAG_EDGE_RISING | GPIO_V2_LINE_FLAG_EDGE_FALLING;
  request.config.flags |= is_active_low ? GPIO_V2_LINE_FLAG_ACTIVE_LOW | GPIO_V2_LINE_FLAG_BIAS_PULL_UP
                                        : GPIO_V2_LINE_FLAG_BIAS_PULL_DOWN;
  return ioctl(chip, GPIO_V2_GET_LINE_IOCTL, &request) == -1 ? -1 : request.fd;
}

// 1 active, 0 inactive.
static inline int gpio_read_input(int line) {
  struct gpio_v2_line_values values = {.mask = 1};
  return ioctl(line, GPIO_V2_LINE_GET_VALUES_IOCTL, &values) == -1 ? -1 : (int)(values.bits & 1);
}

static inline int gpio_became_active(const struct gpio_v2_line_event *event) {
  return event->id == GPIO_V2_LINE_EVENT_RISING_EDGE;
}

// Devices on I2C buses, by SMBus transfers (Linux, Documentation/i2c/dev-interface.rst). Every adapter that drives
// hobby boards can do these.

static inline int i2c_select(int bus, int address) { return ioctl(bus, I2C_SLAVE, (unsigned long)address); }

static inline int i2c_transfer(int bus, char direction, int reg, int size, union i2c_smbus_data *data) {
  struct i2c_smbus_ioctl_data transfer = {(uint8_t)direction, (uint8_t)reg, (uint32_t)size, data};
  return ioctl(bus, I2C_SMBUS, &transfer);
}

static inline int i2c_read_register(int bus, int reg) {
  union i2c_smbus_data data = {0};
  return i2c_transfer(bus, I2C_SMBUS_READ, reg, I2C_SMBUS_BYTE_DATA, &data) == -1 ? -1 : data.byte;
}

static inline int i2c_write_register(int bus, int reg, int value) {
  union i2c_smbus_data data = {.byte = (uint8_t)value};
  return i2c_transfer(bus, I2C_SMBUS_WRITE, reg, I2C_SMBUS_BYTE_DATA, &data);
}

// Writes consecutive registers in one transfer.
static inline int i2c_write_registers(int bus, int reg, const uint8_t *values, int count) {
  union i2c_smbus_data data = {0};
  data.block[0] = (uint8_t)count;
  memcpy(data.block + 1, values, (size_t)count);
  return i2c_transfer(bus, I2C_SMBUS_WRITE, reg, I2C_SMBUS_I2C_BLOCK_DATA, &data);
}

// Watchdogs (Linux, Documentation/watchdog/watchdog-api.rst).

static inline int watchdog_set_timeout(int device, int seconds) { return ioctl(device, WDIOC_SETTIMEOUT, &seconds); }

// Whether a file is on one of the kernel's own file systems (sysfs, proc). inotify(7) does not report changes there.
static inline int is_kernel_file(int file) {
  struct statfs system;
  if (fstatfs(file, &system) == -1) return -1;
  return system.f_type == SYSFS_MAGIC || system.f_type == PROC_SUPER_MAGIC;
}
