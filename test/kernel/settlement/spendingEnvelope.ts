// The envelope of a transaction on one of our channels, in its sponsor's fee bump.
import { Keypair } from "@stellar/stellar-sdk"
import { cancelTransaction, withSignatures } from "../../../kernel/stellar/Envelope.ts"
import { bumpWithSignature, feeBump } from "../../support/feeBump.ts"

const channel = Keypair.random().publicKey()
const sponsor = Keypair.random().publicKey()
const transaction = cancelTransaction({ channel, sequence: 7n, bounds: { ledgerMax: 1_011, timeMax: 0n } })
const signed = { publicKey: new Uint8Array(32), signature: new Uint8Array(64) }

export const spendingEnvelope = {
  channel,
  sponsor,
  envelope: bumpWithSignature(feeBump(withSignatures(transaction, []), sponsor, 500n), signed)
}
