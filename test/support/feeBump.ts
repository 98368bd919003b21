// A fee bump as XDR values, encoded independently of the product's encoder.
import type { xdr } from "@stellar/stellar-sdk/base"
import { accountOf } from "../../kernel/stellar/Address.ts"
import { type AccountSignature, type Envelope, withSignatures } from "../../kernel/stellar/Envelope.ts"
import { envelopeKind, extensionKind } from "../../kernel/stellar/kinds.ts"

/** The sponsor's fee bump around a plain transaction; `feeStroops` is the total fee offered. */
export const feeBump = (inner: Envelope, sponsor: string, feeStroops: bigint): xdr.FeeBumpTransactionWire =>
  ({
    feeSource: accountOf(sponsor),
    fee: feeStroops,
    innerTx: inner,
    ext: { v: extensionKind.none }
  }) as unknown as xdr.FeeBumpTransactionWire

export const bumpWithSignature = (tx: xdr.FeeBumpTransactionWire, signature: AccountSignature): Envelope => {
  const signed = withSignatures({} as never, [signature])
  const signatures = signed.type === envelopeKind.v1 ? signed.v1.signatures : []
  return { type: envelopeKind.feeBump, feeBump: { tx, signatures } } as unknown as Envelope
}
