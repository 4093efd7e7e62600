import Store

/// Whose database it is: the operator's key that signs tokens, by its thumbprint.
enum OperatorTable {
  /// Nil before the first start of a server.
  static func key(in transaction: borrowing Transaction) throws(StoreError) -> String? {
    try transaction.run("SELECT thumbprint FROM operator_key").first?.text("thumbprint")
  }

  static func set(_ thumbprint: String, in transaction: borrowing Transaction) throws(StoreError) {
    try transaction.run("DELETE FROM operator_key WHERE thumbprint <> ?", [.text(thumbprint)])
    try transaction.run(
      "INSERT INTO operator_key (thumbprint) VALUES (?) ON CONFLICT (thumbprint) DO NOTHING", [.text(thumbprint)])
  }
}
