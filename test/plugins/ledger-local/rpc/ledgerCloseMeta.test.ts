// The state figures of a ledger's meta agree with those of the configuration entries.
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { xdr } from "@stellar/stellar-sdk"
import { testnet } from "../../../../plugins/ledger-local/engine/state/NetworkSettings.ts"
import { LocalLedger } from "../../../../plugins/ledger-local/LocalLedger.ts"
import { ledgerLayer } from "../support.ts"

const fees = { ...testnet.fees, stateSizeBytes: 123_456_789n }

it.effect("contract state size is the sample average that determines rent", () =>
  Effect.gen(function* () {
    const ledger = yield* LocalLedger
    const key = xdr.LedgerKey.fromJson({
      config_setting: { config_setting_id: "live_soroban_state_size_window" }
    } as never)
    const { entries } = yield* ledger.call("getLedgerEntries", { keys: [key.toXdr("base64")] })
    const data = xdr.LedgerEntryData.fromXdr(entries[0].xdr, "base64").value as any
    const samples = data.value as ReadonlyArray<bigint>
    const average = samples.reduce((sum, size) => sum + BigInt(size), 0n) / BigInt(samples.length)
    expect(average).toBe(fees.stateSizeBytes)
    const { metadataXdr } = yield* ledger.call("getLatestLedger")
    const meta = xdr.LedgerCloseMeta.fromXdr(metadataXdr, "base64").value as any
    expect(BigInt(meta.totalByteSizeOfLiveSorobanState)).toBe(average)
  }).pipe(Effect.provide(ledgerLayer({ settings: { ...testnet, fees } })))
)
