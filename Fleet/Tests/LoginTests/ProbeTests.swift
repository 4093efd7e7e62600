import Login
import Testing

@Suite struct ProbeTests {}
