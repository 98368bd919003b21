// Resources that can run out, in the overview: the fee budget, channels, the disk, and the sponsor's balance.
import { h, type VNode } from "preact"
import { Meter } from "./Bars.ts"
import { bytes, count, roundedStroops, stroops } from "./format.ts"
import { Exactly, Figures, panel } from "./parts.ts"
import type { FacilitatorStatus } from "./reports.ts"
import { tag } from "./tag.ts"

/** Free space under an embedded database. A database server's disk has to be monitored on its own machine. */
const Storage = ({ of }: { readonly of: FacilitatorStatus["storage"] }): VNode<any> => {
  const { database_bytes, disk } = of
  const size = database_bytes === null ? "size unknown" : `database ${bytes(database_bytes)}`
  return disk === null
    ? h(Meter, {
        label: "Database",
        text: database_bytes === null ? "–" : bytes(database_bytes),
        note: "on a server of its own; watch its disk there"
      })
    : h(Meter, {
        label: "Disk",
        used: Number(disk.reserve_bytes),
        of: Number(disk.free_bytes),
        text: `${bytes(disk.free_bytes)} free`,
        note: `${size}; no new payment is accepted below ${bytes(disk.reserve_bytes)}`
      })
}

export const CapacityPanel = ({ of }: { readonly of: FacilitatorStatus }): VNode<any> => {
  const { channels, channels_required, fees, sponsor } = of
  const used = BigInt(fees.charged_stroops) + BigInt(fees.reserved_stroops)
  const left = BigInt(fees.limit_stroops) - used
  const usable = sponsor?.channels_usable ?? channels.length
  const inUse = channels.filter(({ use }) => use !== "idle").length
  return panel(
    { title: "Capacity" },
    h(Meter, {
      label: "Fee budget today",
      used: Number(used),
      of: Number(fees.limit_stroops),
      text: `${roundedStroops(left > 0n ? left : 0n)} left`,
      note: `${stroops(used)} of ${roundedStroops(fees.limit_stroops)} used or reserved; renewed at 00:00 UTC`
    }),
    h(Meter, {
      label: "Channels",
      used: inUse,
      of: Math.max(channels_required, 1),
      text: `${count(Math.max(0, usable - inUse))} free`,
      note: `${count(usable)} of ${count(channels_required)} usable, ${count(inUse)} in use`
    }),
    h(Storage, { of: of.storage }),
    sponsor === null
      ? tag("p.empty", "The sponsor was not read from the ledger yet.")
      : h(Figures, {
          items: [
            {
              label: "Sponsor can spend",
              value: h(Exactly, {
                shown: roundedStroops(sponsor.spendable_stroops),
                exact: stroops(sponsor.spendable_stroops)
              }),
              note: `balance ${roundedStroops(sponsor.balance_stroops)}`
            },
            ...(sponsor.channel_balance_least_stroops === null
              ? []
              : [{ label: "Least in a channel", value: stroops(sponsor.channel_balance_least_stroops) }])
          ]
        })
  )
}
