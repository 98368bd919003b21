// The seal that authenticates the challenges and cookies of this facilitator: HMAC-SHA-256 under a generated secret,
// which is not configured. The first replica creates it, and it is stored in the shared database; deleting it there
// ends every session at the next start.
import { Context, Effect, Layer } from "effect"
import { Base64Url } from "effect/encoding"
import { generatedSecret } from "../database/generatedSecret.ts"
import { Crypto } from "../platform/Crypto.ts"

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text)

export class AccountSeal extends Context.Service<
  AccountSeal,
  {
    /** 43 characters. A seal made for one purpose is not valid for another. */
    readonly seal: (purpose: string, text: string) => string
    /** The time does not depend on the position of a difference. */
    readonly isSeal: (purpose: string, text: string, given: string) => boolean
  }
>()("tollkeeper/accounts/AccountSeal") {
  static readonly layer = Layer.effect(
    AccountSeal,
    Effect.gen(function* () {
      const crypto = yield* Crypto
      const secret = yield* generatedSecret("accounts")
      const seal = (purpose: string, text: string): string =>
        Base64Url.encode(crypto.hmacSha256(secret, bytesOf(`${purpose} ${text}`)))
      return AccountSeal.of({
        seal,
        isSeal: (purpose, text, given) => crypto.timingSafeEqual(bytesOf(given), bytesOf(seal(purpose, text)))
      })
    })
  )
}
