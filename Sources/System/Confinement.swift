import CLinux
import Glibc

/// What a process gives up for good before it reads bytes that may be an attack on a library.
///
/// All of it fails closed: whoever cannot give something up gets an error, and must not read.
package enum Confinement {
  /// Sets limits that end this process before it harms the machine. No program that it starts gains privileges, and it
  /// ends with the thread that started it. Descriptors beyond the standard ones are closed.
  ///
  /// - Parameters:
  ///   - memory: bytes of address space.
  ///   - seconds: of processor time.
  package static func limit(memory: UInt, seconds: UInt) throws(SystemError) {
    // At a crash, the Swift runtime's handlers would start a program that shows where, and wait for it.
    for number in [SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGQUIT] { signal(number, SIG_DFL) }
    try control(PR_SET_PDEATHSIG, UInt(SIGKILL))
    try control(PR_SET_NO_NEW_PRIVS, 1)
    _ = try check("close descriptors") { close_range(3, .max, 0) }
    try limit(RLIMIT_CORE, 0)
    try limit(RLIMIT_AS, memory)
    try limit(RLIMIT_CPU, seconds)
  }

  /// Keeps what this process knows out of core dumps, and away from debuggers of the same user (PR_SET_DUMPABLE in
  /// prctl(2)); with `locksMemory` also out of the swap, where locked memory has no limit (`LimitMEMLOCK=infinity`).
  ///
  /// It cannot fail in a way that anybody could mend, so it says nothing.
  package static func keepSecrets(locksMemory: Bool = false) {
    _ = control_process(PR_SET_DUMPABLE, 0, 0)
    try? limit(RLIMIT_CORE, 0)
    var memory = rlimit()
    guard locksMemory, getrlimit(__rlimit_resource_t(__RLIMIT_MEMLOCK.rawValue), &memory) == 0,
      memory.rlim_cur == rlim_t(bitPattern: -1)
    else { return }
    // Pages as they are used, or every library's whole text would be read at once. Linux 4.4 and later.
    _ = mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT)
  }

  /// Gives up what root, or a capability of the file, may do beyond others (capabilities(7)), and access to what
  /// belongs to root. What is open stays open.
  package static func dropPrivileges() throws(SystemError) {
    if geteuid() == 0 {
      // As far as possible: a container's root may lack the capability, or there is no other user (user_namespaces(7)).
      _ = setgroups(0, nil)
      _ = setgid(nobody)
      _ = setuid(nobody)
      // The change of credentials has cleared it.
      try control(PR_SET_PDEATHSIG, UInt(SIGKILL))
    }
    _ = try check("give up capabilities") { drop_capabilities() }
  }

  /// The user and the group that own nothing, in Debian as in the kernel (`/proc/sys/kernel/overflowuid`).
  private static let nobody: uid_t = 65534

  /// Keeps capabilities that a service was given (`AmbientCapabilities=`) from the programs that it starts.
  package static func keepCapabilities() { _ = clear_ambient_capabilities() }

  /// Leaves this process nothing but memory, the descriptors that it has, and its end: every other system call fails
  /// with EPERM from here on (seccomp(2)).
  ///
  /// - Parameter controlsDevices: whether it may control those that it has open, as a camera (ioctl(2)).
  /// - Throws: ENOSYS on an architecture that nobody has checked this for, among others.
  package static func computeOnly(controlsDevices: Bool = false) throws(SystemError) {
    try computeOnly(controlsDevices: controlsDevices, architecture: own_audit_architecture())
  }

  /// - Parameter architecture: what seccomp(2) calls that of this program (`AUDIT_ARCH_…`); 0 where it is not known.
  static func computeOnly(controlsDevices: Bool, architecture: UInt32) throws(SystemError) {
    guard architecture != 0 else { throw SystemError("give up system calls", code: ENOSYS) }
    // Allocation, threads' locks, clocks, Swift's seeds, and what every program does at its end. The numbers are those
    // of the architecture that this is compiled for, and arm64 has all of these calls (Linux,
    // include/uapi/asm-generic/unistd.h).
    let calls =
      [
        SYS_read, SYS_write, SYS_mmap, SYS_munmap, SYS_mremap, SYS_mprotect, SYS_madvise, SYS_brk, SYS_futex,
        SYS_clock_gettime, SYS_getrandom, SYS_rt_sigreturn, SYS_exit, SYS_exit_group,
      ] + (controlsDevices ? [SYS_ioctl] : [])
    // Classic BPF (Linux, Documentation/userspace-api/seccomp_filter.rst): the fields of seccomp_data are at 0 (the
    // number of the call) and 4 (the architecture, without which a number says nothing).
    var filter = [
      load(offset: 4), unless(equal: architecture, skip: UInt8(calls.count + 1)), load(offset: 0),
    ]
    for (index, call) in calls.enumerated() {
      filter.append(when(equal: UInt32(call), skip: UInt8(calls.count - index)))
    }
    filter.append(answer(UInt32(SECCOMP_RET_ERRNO) | UInt32(EPERM)))
    filter.append(answer(UInt32(SECCOMP_RET_ALLOW)))
    let result = filter.withUnsafeMutableBufferPointer { filter in
      var program = sock_fprog(len: UInt16(filter.count), filter: filter.baseAddress)
      return withUnsafePointer(to: &program) {
        control_process(PR_SET_SECCOMP, UInt(SECCOMP_MODE_FILTER), UInt(bitPattern: $0))
      }
    }
    if result == -1 { throw SystemError("give up system calls") }
  }

  // MARK: -

  private static func control(_ option: Int32, _ value: UInt) throws(SystemError) {
    _ = try check("give up privileges") { control_process(option, value, 0) }
  }

  private static func limit(_ resource: __rlimit_resource, _ value: UInt) throws(SystemError) {
    let resource = __rlimit_resource_t(resource.rawValue)
    var limit = rlimit()
    _ = try check("ask for a limit") { getrlimit(resource, &limit) }
    // A limit that was set for this process may not be raised.
    limit.rlim_max = min(limit.rlim_max, value)
    limit.rlim_cur = limit.rlim_max
    _ = try check("set a limit") { setrlimit(resource, &limit) }
  }

  private static func load(offset: UInt32) -> sock_filter {
    sock_filter(code: UInt16(BPF_LD | BPF_W | BPF_ABS), jt: 0, jf: 0, k: offset)
  }

  private static func when(equal value: UInt32, skip: UInt8) -> sock_filter {
    sock_filter(code: UInt16(BPF_JMP | BPF_JEQ | BPF_K), jt: skip, jf: 0, k: value)
  }

  private static func unless(equal value: UInt32, skip: UInt8) -> sock_filter {
    sock_filter(code: UInt16(BPF_JMP | BPF_JEQ | BPF_K), jt: 0, jf: skip, k: value)
  }

  private static func answer(_ value: UInt32) -> sock_filter {
    sock_filter(code: UInt16(BPF_RET | BPF_K), jt: 0, jf: 0, k: value)
  }
}
