// Hand-made contracts on the embedded ledger, uploaded, created and called by transactions with hand-made resources, so
// that they also reach the ledger when a simulation would have refused them.
import { Effect } from "effect"
import { Address, type Keypair, Operation, SorobanDataBuilder, xdr } from "@stellar/stellar-sdk"
import { contractIdOf } from "../../../plugins/ledger-local/engine/host/createContract.ts"
import { contractCodeKey, contractInstanceKey } from "../../../plugins/ledger-local/engine/state/LedgerKeys.ts"
import {
  addressOfStrKey,
  codec,
  contractAddress,
  type LedgerKey
} from "../../../plugins/ledger-local/engine/xdr/Xdr.ts"
import { LocalLedger } from "../../../plugins/ledger-local/LocalLedger.ts"
import { engineCrypto } from "../../support/engineCrypto.ts"
import { operationCode, send, transaction } from "./support.ts"

const SALT = Buffer.alloc(32, 9)

export const contractId = (source: Keypair): Effect.Effect<Uint8Array, never, LocalLedger> =>
  Effect.map(LocalLedger, ({ ledger }) =>
    contractIdOf(engineCrypto, ledger.options.networkId, {
      type: 0,
      fromAddress: { address: addressOfStrKey(source.publicKey()), salt: SALT }
    })
  )

const data = (readOnly: ReadonlyArray<xdr.LedgerKey>, readWrite: ReadonlyArray<xdr.LedgerKey>, instructions: number) =>
  new SorobanDataBuilder()
    .setReadOnly([...readOnly])
    .setReadWrite([...readWrite])
    .setResources(instructions, 10_000, 130_000)
    .setResourceFee(900_000_000n)
    .build()

/** The source's authorization of its contract's creation, in a simulation's form. */
const creation = Effect.fnUntraced(function* (source: Keypair, wasmHash: Uint8Array) {
  const ledger = yield* LocalLedger
  const operation = Operation.createCustomContract({ address: new Address(source.publicKey()), wasmHash, salt: SALT })
  const tx = yield* transaction(source, [operation])
  const { results } = yield* ledger.call("simulateTransaction", { transaction: tx.toEnvelope().toXdr("base64") })
  return results[0].auth.map((entry: string) => xdr.SorobanAuthorizationEntry.fromXdr(entry, "base64"))
})

/** Sends an upload, a creation or a call of the source's single contract, with hand-made resources. */
export const submit = Effect.fnUntraced(function* (
  source: Keypair,
  wasm: Uint8Array,
  step: "upload" | "create" | "call",
  instructions = 300_000_000
) {
  const hash = engineCrypto.sha256(wasm)
  const id = yield* contractId(source)
  const address = Address.contract(Buffer.from(id))
  const key = (wire: LedgerKey): xdr.LedgerKey => xdr.LedgerKey.fromXdr(Buffer.from(codec.LedgerKey.encode(wire)))
  const [code, instance] = [key(contractCodeKey(hash)), key(contractInstanceKey(contractAddress(id)))]
  const creator = new Address(source.publicKey())
  const operation =
    step === "upload"
      ? Operation.uploadContractWasm({ wasm })
      : step === "create"
        ? Operation.createCustomContract({
            address: creator,
            wasmHash: hash,
            salt: SALT,
            auth: yield* creation(source, hash)
          })
        : Operation.invokeContractFunction({ contract: address.toString(), function: "run", args: [] })
  const sorobanData =
    step === "upload"
      ? data([], [code], instructions)
      : step === "create"
        ? data([code], [instance], instructions)
        : data([code, instance], [], instructions)
  const tx = yield* transaction(source, [operation], {
    fee: "900001000",
    configure: (builder) => builder.setSorobanData(sorobanData).setTimeout(0)
  })
  return yield* send(tx)
})

export const outcome = Effect.fnUntraced(function* (hash: string) {
  const ledger = yield* LocalLedger
  const raw = yield* ledger.call("getTransaction", { hash })
  const result = raw.resultXdr === undefined ? undefined : xdr.TransactionResult.fromXdr(raw.resultXdr, "base64")
  return { status: raw.status as string, code: result?.result.type as string | undefined, inner: operationCode(result) }
})
