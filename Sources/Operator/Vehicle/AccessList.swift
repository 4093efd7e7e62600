import Domain

/// Who may use which topics of the broker: acl_file in mosquitto.conf(5). What is not in it is not allowed.
struct AccessList {
  let topic: TopicPrefix
  let steps: [Step]

  var text: String {
    var text = """
      # Who may use which topics; nobody may use any other. A user is the common name of a client's certificate:
      # a role and not a person, so that the broker learns no names.

      """
    for (user, setPosition, status) in [("rider", "write", "read"), ("controller", "read", "write")] {
      text += "\nuser \(user)\n"
      for step in steps {
        text += "topic \(setPosition) \(topic.setPosition(step.id))\n"
        text += "topic \(status) \(topic.status(step.id))\n"
      }
    }
    return text
  }
}
