// Search as its operator sees it: active indexes and their coverage of the catalog, the model's vectors in use, the
// share of results that were then paid for, and queries without a result.
import { h, type VNode } from "preact"
import { useAsked } from "./ask.ts"
import { type Choices, FilterBar } from "./FilterBar.ts"
import { count, counted, percent } from "./format.ts"
import { Figures, Moment, panel, SaveCsv, Shown, State, written } from "./parts.ts"
import { usePlace } from "./place.ts"
import { Table } from "./Table.ts"
import type { Conversion, Listed, Missed, SearchStatus as Status } from "./reports.ts"
import { tag } from "./tag.ts"

const StatusFigures = ({ of }: { readonly of: Status }): VNode<any> => {
  const { lexical, resources, semantic } = of.index_coverage
  const held = ({ indexed, share }: Status["index_coverage"]["lexical"]) =>
    `${count(indexed)} of ${count(resources)} listings, ${percent(share, 1)}`
  return h(Figures, {
    items: [
      { label: "Word index", value: h(State, { word: of.lexical.health }), note: held(lexical) },
      {
        label: "Meaning index, built in",
        value: h(State, { word: of.embedded.health }),
        note: `${count(of.embedded.indexed)} of ${count(resources)} listings`
      },
      { label: "Meaning index, model", value: h(State, { word: of.semantic.health }), note: held(semantic) },
      {
        label: "Waiting for vectors",
        value: count(of.worker.queue_depth),
        note: of.worker.status === "disabled" ? "no model is configured" : `worker ${of.worker.status}`
      },
      { label: "Without vectors", value: count(of.worker.dead_letters), note: "the model failed on them" }
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
        empty: "None yet. Name a provider under search in the profile, and the plugin search-semantic builds them.",
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

const MissedTable = ({ path }: { readonly path: string }): VNode<any> =>
  h(Shown<Listed<Missed>>, {
    asked: useAsked<Listed<Missed>>(path, 30_000),
    show: ({ items }) =>
      h(Table<Missed>, {
        label: "Searches without a result",
        rows: items,
        keyOf: ({ words }) => words,
        cards: true,
        empty: "Every search in this time had a result.",
        columns: [
          { head: "Query", card: "first", cell: ({ words }) => written(words) },
          { head: "Callers", numeric: true, card: "last", cell: ({ sessions }) => count(sessions) },
          { head: "Times", numeric: true, cell: ({ times }) => count(times) },
          { head: "Last asked", cell: ({ last_at }) => h(Moment, { at: last_at }) }
        ]
      })
  })

const spans: Choices = [
  ["", "Last 24 hours"],
  ["168", "Last 7 days"],
  ["720", "Last 30 days"]
]
const hoursAbsent = "24"

export const SearchView = ({ mayOperate }: { readonly mayOperate: boolean }): VNode<any> => {
  const { query } = usePlace()
  const hours = query.get("hours") ?? hoursAbsent
  const status = useAsked<Status>("/analytics/v1/search/status", 10_000)
  const conversion = useAsked<Conversion>(`/analytics/v1/search/conversion?${new URLSearchParams({ hours })}`, 30_000)
  const missed = `/analytics/v1/search/missed?${new URLSearchParams({ hours })}`
  return tag(
    "div.grid",
    panel(
      { title: "Searches and payments", wide: true },
      h(FilterBar, { query, choices: [{ name: "hours", label: "Time", choices: spans }] }),
      h(Shown<Conversion>, { asked: conversion, show: (of) => h(ConversionFigures, { of }) })
    ),
    panel(
      {
        title: "Searches without a result",
        wide: true,
        ...(mayOperate ? { actions: h(SaveCsv, { name: "missed searches", path: missed }) } : {})
      },
      mayOperate ? h(MissedTable, { path: missed }) : tag("p.quiet", "Sign in as an operator to see these queries.")
    ),
    panel(
      { title: "Indexes", wide: true },
      h(Shown<Status>, { asked: status, show: (of) => h(StatusFigures, { of }) })
    ),
    panel(
      {
        title: "Builds of the model's vectors",
        wide: true,
        actions: h(SaveCsv, { name: "generations", path: generationsPath })
      },
      h(Generations, {})
    )
  )
}
