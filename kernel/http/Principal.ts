// Who asks, under two names. A keyed caller has one for both. All keyless callers own their payments together, for a
// serverless seller changes its address between a pending answer and the next try; what they use is counted by address.

export interface Principal {
  /** Whose identifiers, answers and claims these are: `key:<label or hash>`, or `anonymous`. Never a secret. */
  readonly owner: string
  /** Whom budgets, rates and fairness count: `key:<label or hash>`, or `ip:<address or /64>`. */
  readonly source: string
  readonly keyed: boolean
}

/** The owner of everything that was settled without a key. */
export const anonymous = "anonymous"

/** A principal as budgets count it. */
export const counted = ({ keyed, source }: Principal) => ({ id: source, keyed })
