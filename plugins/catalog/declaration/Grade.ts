// Whose words a listing's are. A payment is a hint that a resource exists; what is listed is what its origin says. A
// higher grade displaces a lower one, a lower one never touches a higher one, and among what is merely claimed the
// first stays (decisions 4).

export const grades = ["claimed", "declared", "origin"] as const

/**
 * `claimed`: carried by a payment that anybody may have made. `declared`: carried under a principal that showed control
 * of the recipient. `origin`: read from the origin's live 402 or its documents.
 */
export type Grade = (typeof grades)[number]

/** Whether words of one grade may take the place of words of another. */
export const mayDisplace = (newer: Grade, older: Grade): boolean =>
  newer !== "claimed" && grades.indexOf(newer) >= grades.indexOf(older)

/** What a seller can do so that words are believed more. */
export const raisedBy: Readonly<Record<Grade, string>> = {
  claimed:
    "show control of the recipient (POST /catalog/v1/challenge) and settle with that key, or let the origin answer " +
    "with its 402 or /.well-known/x402",
  declared: "let the origin answer with its 402 or /.well-known/x402",
  origin: "nothing: these are the origin's own words"
}
