// Settlements as they happen, from server-sent events: each is one row that changes until it has ended. A browser that
// lost the stream comes back by itself where it stopped. Rows are drawn at most a few times a second and a bounded
// number is kept, so that the page is at ease whatever arrives.
import { h, type VNode } from "preact"
import { useEffect, useRef, useState } from "preact/hooks"
import { amount, type Denomination, duration, stroops } from "./format.ts"
import { Moment, Name, Notice, Panel, State, Table } from "./parts.ts"

export interface News extends Denomination {
  readonly id: string
  readonly at: string
  readonly state: string
  readonly scheme: string
  readonly payer: string
  readonly pay_to: string
  readonly amount: string
  readonly transaction_hash: string
  readonly recorded_at: string
  readonly resolved_at: string | null
  readonly fee_stroops: string | null
  readonly error_reason: string | null
}

const rowsMax = 100
const drawEveryMillis = 200
const types = ["recorded", "settled", "failed", "expired", "unresolved"]

type Link = "opening" | "open" | "lost" | "refused"

/** The newest first; a settlement that is told again changes its row. */
const merged = (rows: ReadonlyArray<News>, news: ReadonlyArray<News>): ReadonlyArray<News> => {
  const known = new Map(rows.map((row) => [row.id, row]))
  for (const one of news) known.set(one.id, one)
  return [...known.values()].sort((a, b) => (a.recorded_at < b.recorded_at ? 1 : -1)).slice(0, rowsMax)
}

const useNews = (): { readonly rows: ReadonlyArray<News>; readonly link: Link } => {
  const [rows, change] = useState<ReadonlyArray<News>>([])
  const [link, tell] = useState<Link>("opening")
  const waiting = useRef<Array<News>>([])
  useEffect(() => {
    const stream = new EventSource("/analytics/v1/events")
    let timer: ReturnType<typeof setTimeout> | undefined
    const draw = () => {
      timer = undefined
      const news = waiting.current.splice(0)
      change((rows) => merged(rows, news))
    }
    const hear = ({ data }: MessageEvent<string>) => {
      waiting.current.push(JSON.parse(data) as News)
      if (waiting.current.length > rowsMax) waiting.current.splice(0, waiting.current.length - rowsMax)
      timer ??= setTimeout(draw, drawEveryMillis)
    }
    stream.onopen = () => tell("open")
    stream.onerror = () => tell(stream.readyState === EventSource.CLOSED ? "refused" : "lost")
    for (const type of types) stream.addEventListener(`settlement.${type}`, hear)
    return () => {
      stream.close()
      clearTimeout(timer)
    }
  }, [])
  return { rows, link }
}

const words: Readonly<Record<Link, string>> = {
  opening: "connecting…",
  open: "live",
  lost: "the facilitator does not answer; trying again…",
  refused: "the stream was refused; reload the page to try again"
}

const took = ({ recorded_at, resolved_at }: News): string =>
  resolved_at === null ? "–" : duration((Date.parse(resolved_at) - Date.parse(recorded_at)) / 1_000)

const feeOf = ({ fee_stroops }: News): string => (fee_stroops === null ? "–" : stroops(fee_stroops))

export const LiveView = (): VNode<any> => {
  const { link, rows } = useNews()
  return h(
    Panel,
    {
      title: "As it happens",
      wide: true,
      actions: h("span", { class: `state ${link === "open" ? "good" : "warn"}`, role: "status" }, words[link])
    },
    link === "lost" ? h(Notice, { kind: "fault" }, "What stands here is what was told before.") : null,
    h(Table<News>, {
      label: "Live settlements",
      rows,
      keyOf: ({ id }) => id,
      empty: "Nothing was settled within the last quarter of an hour. It will appear here by itself.",
      columns: [
        { head: "Recorded", cell: ({ recorded_at }) => h(Moment, { at: recorded_at }) },
        {
          head: "State",
          cell: ({ error_reason, state }) => [
            h(State, { word: state }),
            error_reason === null ? null : h("div", { class: "quiet" }, error_reason)
          ]
        },
        { head: "Amount", numeric: true, cell: (row) => amount(row.amount, row) },
        { head: "Payer", cell: ({ payer }) => h(Name, { text: payer }) },
        { head: "Paid to", cell: ({ pay_to }) => h(Name, { text: pay_to }) },
        { head: "Took", numeric: true, cell: took },
        { head: "Fee", numeric: true, cell: feeOf },
        { head: "Transaction", cell: (row) => h(Name, { text: row.transaction_hash, href: `#settlement/${row.id}` }) }
      ]
    })
  )
}
