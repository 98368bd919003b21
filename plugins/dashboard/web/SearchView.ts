// Search as its operator sees it: active indexes and their coverage of the catalog, the model's vectors in use, the
// share of results that were then paid for, and queries without a result.
import { h, type VNode } from "preact"
import { useState } from "preact/hooks"
import { useAsked } from "./ask.ts"
import { count, counted, percent } from "./format.ts"
import { Figures, Moment, Panel, SaveCsv, Shown, State, written } from "./parts.ts"
import { Table } from "./Table.ts"
import type { Listed } from "./reports.ts"

interface Coverage {
  readonly indexed: number
  readonly share: number
}

interface Status {
  readonly lexical: { readonly health?: string; readonly status?: string }
  readonly semantic: { readonly health?: string; readonly status?: string }
  readonly embedded?: { readonly health?: string; readonly indexed: number }
  readonly index_coverage: {
    readonly resources: number
    readonly lexical: Coverage
    readonly semantic: Coverage
  }
  readonly worker: { readonly status: string; readonly queue_depth: number; readonly dead_letters: number }
}

interface Conversion {
  readonly impressions: string
  readonly impressions_without_results: string
  readonly sessions: string
  readonly verified_impressions: string
  readonly settled_impressions: string
}

const wordOf = ({ health, status }: Status["lexical"]): string => health ?? status ?? "unknown"

const StatusFigures = ({ of }: { readonly of: Status }): VNode<any> => {
  const { lexical, resources, semantic } = of.index_coverage
  const held = ({ indexed, share }: Coverage) =>
    `${count(indexed)} of ${count(resources)} listings, ${percent(share, 1)}`
  return h(Figures, {
    items: [
      { label: "Lexical index", value: h(State, { word: wordOf(of.lexical) }), note: held(lexical) },
      ...(of.embedded === undefined
        ? []
        : [
            {
              label: "Word vector index",
              value: h(State, { word: wordOf(of.embedded) }),
              note: `${count(of.embedded.indexed)} of ${count(resources)} listings`
            }
          ]),
      { label: "Model vector index", value: h(State, { word: wordOf(of.semantic) }), note: held(semantic) },
      { label: "Vector queue", value: count(of.worker.queue_depth), note: `worker ${of.worker.status}` },
      { label: "Dead letters", value: count(of.worker.dead_letters) }
    ]
  })
}

const ConversionFigures = ({ of }: { readonly of: Conversion }): VNode<any> =>
  h(Figures, {
    items: [
      { label: "Searches", value: count(of.impressions), note: `in ${counted(of.sessions, "session")}` },
      {
        label: "Without a result",
        value: count(of.impressions_without_results),
        note: percent(of.impressions_without_results, of.impressions)
      },
      {
        label: "Then verified",
        value: count(of.verified_impressions),
        note: "resources, once for each session"
      },
      {
        label: "Then paid",
        value: count(of.settled_impressions),
        note: "resources, once for each session"
      }
    ]
  })

/** `built_at` → `Built`, `lag_ms` → `Lag`: a member as a label, without its unit. */
const headOf = (name: string): string => {
  const words = name.replace(/_(at|ms)$/, "").replaceAll("_", " ")
  return `${words.slice(0, 1).toUpperCase()}${words.slice(1)}`
}

type Generation = Readonly<Record<string, unknown>>

const generationsPath = "/analytics/v1/search/generations?limit=50"

const Generations = (): VNode<any> =>
  h(Shown<Listed<Generation>>, {
    asked: useAsked<Listed<Generation>>(generationsPath, 15_000),
    show: ({ items }) => {
      const names = [...new Set(items.flatMap((row) => Object.keys(row)))]
      return h(Table<Generation>, {
        label: "Generations",
        rows: items,
        keyOf: (row) => String(items.indexOf(row)),
        empty: "No vectors were built yet. They need a provider in the settings of the plugin search-semantic.",
        columns: names.map((name) => ({
          head: headOf(name),
          cell: (row: Generation) =>
            row[name] === null
              ? "–"
              : name.endsWith("_at")
                ? h(Moment, { at: String(row[name]) })
                : written(name.endsWith("_ms") ? `${String(row[name])} ms` : String(row[name]))
        }))
      })
    }
  })

interface Missed {
  readonly words: string
  readonly sessions: string
  readonly times: string
  readonly last_at: string
}

const MissedTable = ({ hours }: { readonly hours: string }): VNode<any> =>
  h(Shown<Listed<Missed>>, {
    asked: useAsked<Listed<Missed>>(`/analytics/v1/search/missed?hours=${hours}`, 30_000),
    show: ({ items }) =>
      h(Table<Missed>, {
        label: "Searches without a result",
        rows: items,
        keyOf: ({ words }) => words,
        empty: "Every search of this window had a result.",
        columns: [
          { head: "Query", cell: ({ words }) => written(words) },
          { head: "Callers", numeric: true, cell: ({ sessions }) => count(sessions) },
          { head: "Times", numeric: true, cell: ({ times }) => count(times) },
          { head: "Last asked", cell: ({ last_at }) => h(Moment, { at: last_at }) }
        ]
      })
  })

const spans: ReadonlyArray<readonly [hours: string, label: string]> = [
  ["24", "1 day"],
  ["168", "7 days"],
  ["720", "30 days"]
]

export const SearchView = ({ mayOperate }: { readonly mayOperate: boolean }): VNode<any> => {
  const [hours, change] = useState("24")
  const status = useAsked<Status>("/analytics/v1/search/status", 10_000)
  const conversion = useAsked<Conversion>(`/analytics/v1/search/conversion?hours=${hours}`, 30_000)
  const choice = h(
    "label",
    { class: "row quiet" },
    "Window",
    h(
      "select",
      { value: hours, onChange: ({ target }: Event) => change((target as HTMLSelectElement).value) },
      spans.map(([value, label]) => h("option", { key: value, value }, label))
    )
  )
  return h(
    "div",
    { class: "grid" },
    h(
      Panel,
      { title: "Indexes", wide: true },
      h(Shown<Status>, { asked: status, show: (of) => h(StatusFigures, { of }) })
    ),
    h(
      Panel,
      { title: "Searches and payments", wide: true, actions: choice },
      h(Shown<Conversion>, { asked: conversion, show: (of) => h(ConversionFigures, { of }) })
    ),
    h(
      Panel,
      {
        title: "Searches without a result",
        wide: true,
        ...(mayOperate
          ? { actions: h(SaveCsv, { name: "missed searches", path: `/analytics/v1/search/missed?hours=${hours}` }) }
          : {})
      },
      mayOperate
        ? h(MissedTable, { hours })
        : h("p", { class: "quiet" }, "Sign in as an operator to see these queries.")
    ),
    h(
      Panel,
      {
        title: "Vector generations",
        wide: true,
        actions: h(SaveCsv, { name: "generations", path: generationsPath })
      },
      h(Generations, {})
    )
  )
}
