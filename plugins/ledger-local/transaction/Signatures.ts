// Counting signatures as the network does: each decorated signature may serve several weighings, each signer counts
// once in one weighing, and a weighing stops as soon as its weight is reached. A signature that served nowhere makes
// the whole transaction invalid (BAD_AUTH_EXTRA). Verification is strict ed25519 through the engine's crypto port.
import { SignerKeyType } from "../engine/xdr/types.ts"
import { verifyEd25519 } from "../../../kernel/ledger/Ed25519.ts"
import type { EngineCrypto } from "../engine/host/Random.ts"
import { type AccountEntry, equalBytes, type PublicKey } from "../engine/xdr/Xdr.ts"
import type { DecoratedSignature, Signer, SignerKey } from "./Wire.ts"

const WEIGHT_MAX = 255

/** Kinds of signer, in the order in which a weighing tries them; pre-authorised hashes come before any signature. */
const kinds: ReadonlyArray<SignerKey["type"]> = [2, 0, 3]

const hintOf = (bytes: Uint8Array): Uint8Array => {
  const hint = new Uint8Array(4)
  const tail = bytes.subarray(Math.max(0, bytes.length - 4))
  hint.set(tail)
  return hint
}

export class SignatureChecker {
  readonly #crypto: EngineCrypto
  readonly #hash: Uint8Array
  readonly #signatures: ReadonlyArray<DecoratedSignature>
  readonly #used: Array<boolean>

  constructor(crypto: EngineCrypto, hash: Uint8Array, signatures: ReadonlyArray<DecoratedSignature>) {
    this.#crypto = crypto
    this.#hash = hash
    this.#signatures = signatures
    this.#used = signatures.map(() => false)
  }

  /** True when the signers that signed weigh at least `neededWeight`; at least one must have signed. */
  check(signers: ReadonlyArray<Signer>, neededWeight: number): boolean {
    let weight = 0
    for (const { key, weight: own } of signers) {
      if (key.type !== SignerKeyType.preAuthTx || !equalBytes(key.preAuthTx, this.#hash)) continue
      weight += Math.min(own, WEIGHT_MAX)
      if (weight >= neededWeight) return true
    }
    for (const kind of kinds) {
      const left = signers.filter((signer) => signer.key.type === kind)
      for (let i = 0; i < this.#signatures.length; i++) {
        const signature = this.#signatures[i]!
        const at = left.findIndex((signer) => this.#verifies(signature, signer.key))
        if (at < 0) continue
        this.#used[i] = true
        weight += Math.min(left[at]!.weight, WEIGHT_MAX)
        if (weight >= neededWeight) return true
        left.splice(at, 1)
      }
    }
    return false
  }

  checkAccount(account: AccountEntry, neededWeight: number): boolean {
    return this.check(accountSigners(account), neededWeight)
  }

  /** For an operation with a source that does not exist yet: that account's master key must have signed. */
  checkMissingAccount(id: PublicKey): boolean {
    return this.check([{ key: { type: 0, ed25519: id.ed25519 }, weight: 1 }], 0)
  }

  get allUsed(): boolean {
    return this.#used.every((used) => used)
  }

  #verifies({ hint, signature }: DecoratedSignature, key: SignerKey): boolean {
    switch (key.type) {
      case SignerKeyType.ed25519:
        return equalBytes(hint, hintOf(key.ed25519)) && verifyEd25519(this.#crypto, key.ed25519, this.#hash, signature)
      case SignerKeyType.hashX:
        return equalBytes(hint, hintOf(key.hashX)) && equalBytes(this.#crypto.sha256(signature), key.hashX)
      case SignerKeyType.signedPayload: {
        const { ed25519, payload } = key.ed25519SignedPayload
        const expected = hintOf(ed25519).map((byte, i) => byte ^ payloadHint(payload)[i]!)
        return equalBytes(hint, expected) && verifyEd25519(this.#crypto, ed25519, payload, signature)
      }
      default:
        return false
    }
  }
}

/** The last four bytes of the payload; a shorter one is padded with zeros at the end. */
const payloadHint = (payload: Uint8Array): Uint8Array => hintOf(payload)

/** An account's signers with its master key, when that has weight. */
const accountSigners = (account: AccountEntry): ReadonlyArray<Signer> => {
  const master = account.thresholds[0]!
  return master === 0
    ? account.signers
    : [{ key: { type: 0, ed25519: account.accountId.ed25519 }, weight: master }, ...account.signers]
}

export const Threshold = { low: 1, medium: 2, high: 3 } as const
export type Threshold = (typeof Threshold)[keyof typeof Threshold]
