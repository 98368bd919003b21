// Whether an account signed a text. A classic account (G…) signs it as wallets show it (SEP-53). A contract account
// (C…) cannot sign with a key, so its `__check_auth` decides about an authorization, as for payments: a transfer of
// nothing to the contract address with the text's SHA-256 as its 32 bytes. The whole text is bound, and even on the
// ledger the call would move nothing. The RPC enforces the authorization in a simulation; nothing is submitted.
import { Context, Effect, Layer, Result } from "effect"
import { Base64 } from "effect/encoding"
import { StrKey, xdr } from "@stellar/stellar-sdk/base"
import { Network } from "../config/Network.ts"
import { isSignedText } from "../ledger/isSignedText.ts"
import { LedgerRpc, type LedgerUnavailable } from "../ledger/LedgerRpc.ts"
import { Crypto } from "../platform/Crypto.ts"
import { accountKeyOf, accountOf, contractAddressOf, contractTextOf, encodeAddress } from "../stellar/Address.ts"
import { addressEntry, type AuthEntry, credentialsOf, encodeEntry, invocationOf } from "../stellar/AuthEntry.ts"
import { callOperation, encodeOperation, type InvokeArgs } from "../stellar/ContractCall.ts"
import { simulationEnvelope } from "../stellar/Envelope.ts"
import { readXdr } from "../stellar/readXdr.ts"
import { addressValue, i128Value, voidValue } from "../stellar/Value.ts"

/** Ledgers for which an authorization may be signed; a challenge ends sooner, by its own text. */
const lifeLedgers = 720
/** The source of a simulation need not exist. */
const noSource = accountOf(StrKey.encodeEd25519PublicKey(new Uint8Array(32) as never))

const entryIn = (bytes: Uint8Array): AuthEntry | undefined =>
  Result.getOrUndefined(Result.try(() => readXdr(xdr.SorobanAuthorizationEntry.schema, bytes)))

const encodeInvocation = (invocation: AuthEntry["rootInvocation"]): string =>
  Base64.encode(xdr.SorobanAuthorizedInvocation.schema.encode(invocation))

export class AccountSignatures extends Context.Service<
  AccountSignatures,
  {
    /** Base64 of the authorization that a contract account signs for a text; undefined for a classic account. */
    readonly unsigned: (account: string, text: string) => Effect.Effect<string | undefined, LedgerUnavailable>
    /** `signature`: base64 of a classic account's signature, or of a contract account's signed authorization. */
    readonly isSigned: (account: string, text: string, signature: string) => Effect.Effect<boolean, LedgerUnavailable>
    /** Whether an account of this form can sign here. */
    readonly canSign: (account: string) => boolean
  }
>()("tollkeeper/accounts/AccountSignatures") {
  static readonly layer = Layer.effect(
    AccountSignatures,
    Effect.gen(function* () {
      const rpc = yield* LedgerRpc
      const crypto = yield* Crypto
      const [asset] = (yield* Network).assets.keys()
      const isContract = (account: string) => asset !== undefined && StrKey.isValidContract(account)

      const callFor = (account: string, text: string): InvokeArgs =>
        ({
          contractAddress: contractAddressOf(asset!),
          functionName: "transfer",
          args: [
            addressValue(account),
            addressValue(contractTextOf(crypto.sha256(new TextEncoder().encode(text)))),
            i128Value(0n)
          ]
        }) as unknown as InvokeArgs

      const unsigned: AccountSignatures["Service"]["unsigned"] = Effect.fnUntraced(function* (account, text) {
        if (!isContract(account)) return undefined
        const { sequence } = yield* rpc.latestLedger
        const nonce = new DataView(crypto.randomBytes(8).slice().buffer).getBigInt64(0)
        const terms = { address: account, nonce, signatureExpirationLedger: sequence + lifeLedgers }
        const entry = addressEntry({ ...terms, signature: voidValue }, invocationOf(callFor(account, text)))
        return Base64.encode(encodeEntry(entry))
      })

      const isAuthorized = Effect.fnUntraced(function* (account: string, text: string, bytes: Uint8Array) {
        const entry = entryIn(bytes)
        const address = entry === undefined ? undefined : credentialsOf(entry)?.address
        if (entry === undefined || address === undefined) return false
        const call = callFor(account, text)
        const isOfAccount =
          Base64.encode(encodeAddress(address)) === Base64.encode(encodeAddress(contractAddressOf(account)))
        if (!isOfAccount || encodeInvocation(entry.rootInvocation) !== encodeInvocation(invocationOf(call)))
          return false
        const operation = encodeOperation(callOperation(call, [entry]))
        return (yield* rpc.simulate(simulationEnvelope(noSource, operation)))._tag === "Simulated"
      })

      return AccountSignatures.of({
        unsigned,
        canSign: (account) => accountKeyOf(account) !== undefined || isContract(account),
        isSigned: (account, text, signature) => {
          const bytes = Result.getOrElse(Base64.decode(signature), () => new Uint8Array())
          return isContract(account)
            ? isAuthorized(account, text, bytes)
            : Effect.sync(() => isSignedText(crypto, account, text, bytes))
        }
      })
    })
  )
}
