// The challenge that an account signs to sign in with a browser: a sentence that names this host, this network, the
// account and its expiry, sealed by us, so nothing is stored until it is answered. It is signed as a text that wallets
// show (SEP-53), and differs from every other challenge of this service: a signature of one is worthless for another.
import { Clock, Context, Effect, Layer, Result } from "effect"
import { Base64, Base64Url } from "effect/encoding"
import { Network } from "../config/Network.ts"
import { clockSecondsMax } from "../http/Sessions.ts"
import { isSignedText } from "../ledger/isSignedText.ts"
import { Crypto } from "../platform/Crypto.ts"
import { accountKeyOf } from "../stellar/Address.ts"
import { AccountSeal } from "./AccountSeal.ts"

/** How long a challenge may be answered. */
const lifeMillis = 600_000
const leftMillisMax = lifeMillis + clockSecondsMax * 1_000
const challengeLengthMax = 600
const hostForm = /^[a-z0-9.:[\]-]{1,255}$/
const challengeForm =
  /^Tollkeeper at (\S+): (\S+) signs in on (\S+) until (\S+) by ([A-Za-z0-9_-]{22}) ([A-Za-z0-9_-]{43})$/

export interface AccountChallenge {
  readonly challenge: string
  readonly expiresAt: Date
}

/** An answer as it was sent. */
export interface AccountAnswer {
  /** The Host header of the browser's request, in lower case. */
  readonly host: string
  readonly account: string
  readonly challenge: string
  /** Base64. */
  readonly signature: string
}

export class AccountChallenges extends Context.Service<
  AccountChallenges,
  {
    /** A challenge, or why there is none. */
    readonly make: (host: string, account: string) => Effect.Effect<AccountChallenge | string>
    /** Why an answer is refused; undefined when the account has signed this challenge. */
    readonly errorOf: (answer: AccountAnswer) => Effect.Effect<string | undefined>
  }
>()("tollkeeper/accounts/AccountChallenges") {
  static readonly layer = Layer.effect(
    AccountChallenges,
    Effect.gen(function* () {
      const crypto = yield* Crypto
      const network = yield* Network
      const { isSeal, seal } = yield* AccountSeal

      const make = (host: string, account: string) =>
        Effect.map(Clock.currentTimeMillis, (now): AccountChallenge | string => {
          if (account.startsWith("C"))
            return "a contract has no key that signs a text; sign in with a key of this facilitator"
          if (accountKeyOf(account) === undefined) return "an account (G…) is required"
          if (!hostForm.test(host)) return "the Host header is no name"
          const expiresAt = new Date(now + lifeMillis)
          const until = `until ${expiresAt.toISOString()} by ${Base64Url.encode(crypto.randomBytes(16))}`
          const text = `Tollkeeper at ${host}: ${account} signs in on ${network.id} ${until}`
          return { challenge: `${text} ${seal("challenge", text)}`, expiresAt }
        })

      const failureOf = ({ account, challenge, host, signature }: AccountAnswer) =>
        Effect.map(Clock.currentTimeMillis, (now): string | undefined => {
          const [, ofHost, ofAccount, ofNetwork, until, , given] =
            challenge.length > challengeLengthMax ? [] : (challengeForm.exec(challenge) ?? [])
          const text = challenge.slice(0, challenge.lastIndexOf(" "))
          if (given === undefined || !isSeal("challenge", text, given))
            return "this is no challenge of this facilitator"
          if (ofHost !== host)
            return "this challenge was asked under another name of this facilitator; ask for a new one"
          if (ofNetwork !== network.id) return "this challenge was asked on another network; ask for a new one"
          if (ofAccount !== account) return "this challenge names another account"
          const left = Date.parse(until!) - now
          // One that would live longer was made while a clock was ahead.
          if (!(left > 0 && left <= leftMillisMax)) return "this challenge has ended; ask for a new one"
          const bytes = Result.getOrElse(Base64.decode(signature), () => new Uint8Array())
          return isSignedText(crypto, account, challenge, bytes)
            ? undefined
            : "the signature is not this account's over this challenge, as a message of SEP-53, in base64"
        })

      return AccountChallenges.of({ make, errorOf: failureOf })
    })
  )
}
