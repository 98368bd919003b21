// Golden vectors that we recorded: named calls of the asset contract on a fixed small ledger, with all their effects.
// `node test/replay/golden.ts` records them again; the test compares. They guard the replay's results if the streams
// are unavailable.
import { writeFileSync } from "node:fs"
import { eventsFeeStroops, rentFeeStroops } from "../../plugins/ledger-local/engine/state/Fees.ts"
import type { HostResult } from "../../plugins/ledger-local/engine/host/HostResult.ts"
import { testnet } from "../../plugins/ledger-local/engine/state/NetworkSettings.ts"
import { address as addressVal, bool, i128, u32 } from "../../plugins/ledger-local/engine/xdr/ScVal.ts"
import { codec } from "../../plugins/ledger-local/engine/xdr/Xdr.ts"
import {
  issuer,
  ledgerSeq,
  native,
  paidWorld,
  payee,
  payer,
  someContract,
  sponsor,
  stranger,
  transferArgs,
  type World
} from "../plugins/ledger-local/engine/World.ts"

export const goldenPath = new URL("golden.json", import.meta.url).pathname

const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64")

const cases: Readonly<Record<string, (world: World) => HostResult>> = {
  "transfer between accounts": (world) => world.call("transfer", transferArgs(payer, payee, 250n), { by: payer }),
  "transfer with legacy credentials": (world) =>
    world.call("transfer", transferArgs(payer, payee, 250n), { by: payer, credentials: "v1" }),
  "transfer by the source account": (world) =>
    world.call("transfer", transferArgs(payer, payee, 250n), { source: payer }),
  "transfer to a multiplexed account": (world) =>
    world.call("transfer", transferArgs(payer, { type: 2, muxedAccount: { id: 42n, ed25519: payee.id.ed25519 } }, 1n), {
      by: payer
    }),
  "transfer to a contract": (world) => world.call("transfer", transferArgs(payer, someContract, 5n), { by: payer }),
  "transfer from the issuer": (world) => world.call("transfer", transferArgs(issuer, payee, 5n), { by: issuer }),
  "transfer to the issuer": (world) => world.call("transfer", transferArgs(payer, issuer, 5n), { by: payer }),
  "native transfer": (world) => world.call("transfer", transferArgs(payer, payee, 5n), { by: payer }, native),
  "native transfer to a new account": (world) =>
    world.call("transfer", transferArgs(payer, stranger, 1_0000000n), { by: payer }, native),
  approve: (world) =>
    world.call("approve", [addressVal(payer.address), addressVal(sponsor.address), i128(10n), u32(ledgerSeq + 5_000)], {
      by: payer
    }),
  mint: (world) => world.call("mint", [addressVal(payee.address), i128(5n)], { by: issuer }),
  burn: (world) => world.call("burn", [addressVal(payer.address), i128(5n)], { by: payer }),
  set_admin: (world) => world.call("set_admin", [addressVal(stranger.address)], { by: issuer }),
  trust: (world) => world.call("trust", [addressVal(sponsor.address)]),
  set_authorized: (world) => {
    world.account(issuer, 100_0000000n, { flags: 2 })
    return world.call("set_authorized", [addressVal(payer.address), bool(false)], { by: issuer })
  },
  "too little balance": (world) => world.call("transfer", transferArgs(payer, payee, 5_000n), { by: payer }),
  "no trustline": (world) => world.call("transfer", transferArgs(payer, sponsor, 1n), { by: payer }),
  "expired signature": (world) =>
    world.call("transfer", transferArgs(payer, payee, 1n), { by: payer, expiration: ledgerSeq - 1 }),
  "without authorization": (world) => world.call("transfer", transferArgs(payer, payee, 1n), { auth: [] })
}

const recorded = (result: HostResult): unknown => {
  const diagnostics = result.diagnostics.map((event) => base64(codec.DiagnosticEvent.encode(event)))
  if (!result.ok) return { error: result.error.label, message: result.error.message, diagnostics }
  const { changes, footprint } = result
  return {
    returnValue: base64(codec.ScVal.encode(result.returnValue)),
    diagnostics,
    entries: [...changes.changes()].map(({ after }) =>
      after === undefined ? null : base64(codec.LedgerEntry.encode(after))
    ),
    footprint: {
      readOnly: footprint.readOnly.map((key) => base64(codec.LedgerKey.encode(key))),
      readWrite: footprint.readWrite.map((key) => base64(codec.LedgerKey.encode(key)))
    },
    instructions: result.instructions,
    diskReadBytes: result.diskReadBytes,
    writeBytes: result.writeBytes,
    rentStroops: String(rentFeeStroops(testnet, result.rentChanges, ledgerSeq)),
    eventsStroops: String(eventsFeeStroops(testnet, result.eventsBytes))
  }
}

/** The current effects of every named call. */
export const recordGolden = (): Record<string, unknown> =>
  Object.fromEntries(Object.entries(cases).map(([name, run]) => [name, recorded(run(paidWorld()))]))

if (import.meta.main) writeFileSync(goldenPath, `${JSON.stringify(recordGolden(), undefined, 2)}\n`)
