package import Domain
package import MQTT

extension MQTTError: Failure {
  package var exitStatus: ExitStatus { .unavailable }
}
