// The limits that change without a restart, and the form that changes one.
import { h, type VNode } from "preact"
import { post } from "./ask.ts"
import { Confirmed, Entry } from "./Confirmed.ts"
import { count, stroops } from "./format.ts"
import type { FacilitatorStatus } from "./reports.ts"
import { Table } from "./Table.ts"

type Limit = FacilitatorStatus["limits"][number]

const words: Readonly<Record<string, string>> = {
  max_sponsored_stroops_per_key_per_day: "Fees of a key per UTC day",
  max_global_sponsored_stroops_per_day: "Fees of all keys per UTC day",
  max_pending_settlements: "Open settlements",
  verify_per_second: "Verify requests of a caller per second",
  settle_per_second: "Settle requests of a caller per second"
}

const isFee = (name: string): boolean => name.includes("stroops")

/** Fees in XLM. A rate of zero is unlimited. */
const shownValue = ({ name, value }: Limit): string =>
  isFee(name) ? stroops(value) : name.endsWith("per_second") && value === "0" ? "Unlimited" : count(value)

const Change = (props: { readonly of: Limit; readonly mayMove: boolean; readonly done: () => void }): VNode<any> => {
  const { name, principal, value } = props.of
  return h(
    Confirmed,
    {
      label: "Change",
      question: `Change ${words[name] ?? name}${principal === null ? "" : ` of ${principal}`}?`,
      disabled: !props.mayMove,
      run: (note, given) => {
        const key = String(given.get("key") ?? "").trim()
        const asked = String(given.get("value") ?? "").trim()
        return post("/dashboard/v1/moves", {
          move: "limit",
          name,
          ...(key === "" ? {} : { key }),
          value: asked === "" ? null : asked,
          note
        })
      },
      done: props.done
    },
    h(Entry, {
      label: isFee(name) ? "Value in stroops (empty: the setting) " : "Value (empty: the setting) ",
      name: "value",
      inputMode: "numeric",
      pattern: "\\d{1,18}",
      defaultValue: value
    }),
    name === "max_sponsored_stroops_per_key_per_day"
      ? h(Entry, {
          label: "For one key alone, by label ",
          name: "key",
          defaultValue: principal?.replace(/^key:/, "") ?? ""
        })
      : null
  )
}

export const LimitsPanel = (props: {
  readonly of: FacilitatorStatus
  readonly mayMove: boolean
  readonly done: () => void
}): VNode<any> =>
  h(Table<Limit>, {
    label: "Limits",
    rows: props.of.limits,
    keyOf: ({ name, principal }) => `${name} ${principal ?? ""}`,
    cards: true,
    empty: "No limits.",
    columns: [
      {
        head: "Limit",
        card: "first",
        cell: ({ name, principal }) => `${words[name] ?? name}${principal === null ? "" : `, ${principal}`}`
      },
      { head: "Value", card: "under", cell: shownValue },
      { head: "Set by", card: "aside", cell: ({ is_set }) => (is_set ? "An operator" : "The settings") },
      { head: "Change", card: "last", cell: (one) => h(Change, { of: one, mayMove: props.mayMove, done: props.done }) }
    ]
  })
