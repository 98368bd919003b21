// The challenge that an account signs to prove its identity: a sentence with this host, the account, the purpose, this
// network and the expiry. We seal it, so nothing is stored until it is answered. A signature for one purpose, host,
// account or network is refused for every other one.
import { Clock, Context, Effect, Layer } from "effect"
import { Base64Url } from "effect/encoding"
import { Network } from "../config/Network.ts"
import { clockSecondsMax } from "../http/Sessions.ts"
import type { LedgerUnavailable } from "../ledger/LedgerRpc.ts"
import { Crypto } from "../platform/Crypto.ts"
import { AccountSeal } from "./AccountSeal.ts"
import { AccountSignatures } from "./AccountSignatures.ts"

/** How long a challenge may be answered. */
const lifeMillis = 600_000
/** The longest that an answer to a challenge can be accepted after one was. */
export const leftMillisMax = lifeMillis + clockSecondsMax * 1_000
const challengeLengthMax = 600
const hostForm = /^[a-z0-9.:[\]-]{1,255}$/
/** The purpose of a challenge, as its sentence states it. */
const purposes = { session: "signs in", receipts: "reads its receipts" } as const
type Purpose = keyof typeof purposes
const challengeForm =
  /^Tollkeeper at (\S+): (\S+) ([a-z ]+) on (\S+) until (\S+) by ([A-Za-z0-9_-]{22}) ([A-Za-z0-9_-]{43})$/

export interface AccountChallenge {
  readonly challenge: string
  /** Base64 of the authorization that a contract account signs instead; undefined for a classic account. */
  readonly authorization: string | undefined
  readonly expiresAt: Date
}

export interface AccountAnswer {
  readonly purpose: Purpose
  /** The Host header of the browser's request, in lower case. */
  readonly host: string
  readonly account: string
  readonly challenge: string
  /** Base64 of a classic account's signature, or of a contract account's signed authorization. */
  readonly signature: string
}

export class AccountChallenges extends Context.Service<
  AccountChallenges,
  {
    /** A challenge, or the reason for a refusal. */
    readonly make: (
      purpose: Purpose,
      host: string,
      account: string
    ) => Effect.Effect<AccountChallenge | string, LedgerUnavailable>
    /** The reason why an answer is refused; undefined if the account has signed this challenge. */
    readonly errorOf: (answer: AccountAnswer) => Effect.Effect<string | undefined, LedgerUnavailable>
  }
>()("tollkeeper/accounts/AccountChallenges") {
  static readonly layer = Layer.effect(
    AccountChallenges,
    Effect.gen(function* () {
      const crypto = yield* Crypto
      const network = yield* Network
      const { isSeal, seal } = yield* AccountSeal
      const { canSign, isSigned, unsigned } = yield* AccountSignatures

      const make: AccountChallenges["Service"]["make"] = Effect.fnUntraced(function* (purpose, host, account) {
        if (!canSign(account)) return "an account (G…), or a contract account (C…), is required"
        if (!hostForm.test(host)) return "the Host header is not a host name"
        const expiresAt = new Date((yield* Clock.currentTimeMillis) + lifeMillis)
        const until = `until ${expiresAt.toISOString()} by ${Base64Url.encode(crypto.randomBytes(16))}`
        const text = `Tollkeeper at ${host}: ${account} ${purposes[purpose]} on ${network.id} ${until}`
        const challenge = `${text} ${seal("challenge", text)}`
        return { challenge, authorization: yield* unsigned(account, challenge), expiresAt }
      })

      const errorOf: AccountChallenges["Service"]["errorOf"] = Effect.fnUntraced(function* (answer) {
        const { account, challenge, host, purpose, signature } = answer
        const [, ofHost, ofAccount, ofPurpose, ofNetwork, until, , given] =
          challenge.length > challengeLengthMax ? [] : (challengeForm.exec(challenge) ?? [])
        const text = challenge.slice(0, challenge.lastIndexOf(" "))
        if (given === undefined || !isSeal("challenge", text, given))
          return "this facilitator did not issue this challenge"
        if (ofHost !== host)
          return "this challenge was requested under another name of this facilitator; request a new one"
        if (ofPurpose !== purposes[purpose])
          return "this challenge was requested for another purpose; request a new one"
        if (ofNetwork !== network.id) return "this challenge was requested on another network; request a new one"
        if (ofAccount !== account) return "this challenge names another account"
        const left = Date.parse(until!) - (yield* Clock.currentTimeMillis)
        // A challenge with a longer life was made while a clock was ahead.
        if (!(left > 0 && left <= leftMillisMax)) return "this challenge has expired; request a new one"
        if (yield* isSigned(account, challenge, signature)) return undefined
        return account.startsWith("C")
          ? "the account's contract does not accept this authorization for this challenge"
          : "the signature is not this account's SEP-53 signature of this challenge, in base64"
      })

      return AccountChallenges.of({ make, errorOf })
    })
  )
}
