import Store
import Testing

@Suite struct ProbeTests {}
