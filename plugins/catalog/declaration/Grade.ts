// The grade of a listing's words: their source. A payment only hints that a resource exists; the listing shows what its
// origin declares. A higher grade replaces a lower one, and a lower one never changes a higher one. Among mere claims
// the first stays (rules 4).

export const grades = ["claimed", "declared", "origin"] as const

/**
 * `claimed`: carried by a payment that any account may have made. `declared`: carried under a principal that showed
 * control of the recipient. `origin`: read from the origin's live 402 or its documents.
 */
export type Grade = (typeof grades)[number]

/** Whether words of one grade may take the place of words of another. */
export const mayDisplace = (newer: Grade, older: Grade): boolean =>
  newer !== "claimed" && grades.indexOf(newer) >= grades.indexOf(older)

/** The members of a listing that decide how its grade can be raised. */
interface Raisable {
  readonly grade: Grade
  readonly type: "http" | "mcp"
  readonly methods: ReadonlyArray<string>
  readonly isDynamic: boolean
  /** Probes of its origin found no endpoint that asks to be paid. */
  readonly isDead: boolean
}

const documents =
  "name it, with `accepts`, in /.well-known/x402, /.well-known/x402.json or (x-payment-info) openapi.json"

/** The place for an origin to state its terms: its live 402 if that may be requested, otherwise only its documents. */
const originAdvice = ({ isDynamic, methods, type }: Raisable): string => {
  if (type === "mcp") return `let the origin ${documents}, and allow an unpaid call of the tool (\`unpaidCall\`)`
  const isAsked = !isDynamic && methods.some((method) => method === "GET" || method === "HEAD")
  return isAsked
    ? `let the origin answer with its 402 to GET or HEAD, or ${documents}`
    : `let the origin ${documents}; only GET and HEAD are ever requested`
}

const ownAdvice =
  "settle a payment that carries these words, sign the declaration with the account that is paid, or, where this " +
  "facilitator has keys, show control of that account (POST /catalog/v1/challenge) and settle under the key"

/** Advice for the seller: how to raise the grade, and how to show a listing again after probes found it dead. */
export const raisedBy = (listing: Raisable): string => {
  const { grade, isDead } = listing
  if (grade === "origin") return isDead ? originAdvice(listing) : "nothing: the origin confirmed this text"
  return grade === "declared" ? originAdvice(listing) : `${ownAdvice}; or ${originAdvice(listing)}`
}
