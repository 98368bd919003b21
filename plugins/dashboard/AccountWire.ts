// Sign-in as an account: Schemas that decode and type the bodies below /dashboard/account and describe them in
// /openapi.json.
import { Schema } from "effect"
import { text, time } from "../../kernel/http/wireSchema.ts"

export const AccountAsked = Schema.Struct({ account: text("The account (G… or C…) that is paid.") })

export const AccountChallenged = Schema.Struct({
  account: Schema.String,
  challenge: text("What the account signs, as a message of SEP-53."),
  authorization: Schema.optionalKey(
    text("What a contract account signs instead: base64 of a SorobanAuthorizationEntry that moves nothing.")
  ),
  expires_at: time("Until when it may be answered.")
}).annotate({ identifier: "AccountChallenged" })

export const AccountAnswered = Schema.Struct({
  account: text("The account (G… or C…) that is paid."),
  challenge: text("As it was given."),
  signature: text("Base64: the account's ed25519 signature of the challenge (SEP-53), or the signed authorization.")
})

export const AccountShown = Schema.Struct({
  account: Schema.NullOr(text("The account that this browser has proved; null without one.")),
  until: Schema.NullOr(time("Until when."))
}).annotate({ identifier: "AccountShown" })
