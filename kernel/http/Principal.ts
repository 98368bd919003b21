// The caller's identity, in two forms. For a keyed caller both are equal. All keyless callers own their payments
// together, since a serverless seller changes its address between a pending answer and its retry; their usage is
// counted by address.

export interface Principal {
  /** The owner of identifiers, answers and claims: `key:<label or hash>`, or `anonymous`. Never contains a secret. */
  readonly owner: string
  /** The unit of budgets, rates and fairness: `key:<label or hash>`, or `ip:<address or /64>`. */
  readonly source: string
  readonly keyed: boolean
}

/** The owner of all payments that were settled without a key. */
export const anonymous = "anonymous"

/** A principal in the form that budgets count. */
export const counted = ({ keyed, source }: Principal) => ({ id: source, keyed })
