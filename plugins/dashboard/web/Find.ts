// The search box above every page. It finds settlements, accounts, assets, listings, origins, keys and reasons that the
// reader may see; other readers find public listings. `/` focuses it; arrows and Enter choose a result.
import { h, type VNode } from "preact"
import { useEffect, useRef, useState } from "preact/hooks"
import { ask, type Failed } from "./ask.ts"
import { short } from "./format.ts"
import { isAccount, isTransaction, searchedFor } from "./identifiers.ts"
import { written } from "./parts.ts"
import { type FoundKind, pageOf, payeePageOf, publicPageOf } from "./place.ts"
import type { FoundItem, ListingsPage } from "./reports.ts"
import { tag } from "./tag.ts"
import { keyName } from "./things.ts"

interface Found {
  readonly kind: FoundKind
  readonly title: string
  readonly note: string
  readonly href: string
}

const pauseMillis = 150
const resultsMax = 12
/** Maximum letters that the reports search for. A longer URL is cut to its beginning. */
const wordsMax = 200

interface Answer {
  readonly words: string
  readonly items: ReadonlyArray<Found>
  /** The reason for a missing part. */
  readonly failed?: string
}

type Part = Pick<Answer, "items" | "failed">

const nothing: Part = { items: [] }

/** A disabled route finds nothing. */
const missing = ({ status, words }: Failed): Part => (status === 404 ? nothing : { items: [], failed: words })

/** A listing that is only similar in meaning does not answer the typed words. */
const readListings = async (words: string, signal: AbortSignal): Promise<Part> => {
  if (isTransaction(words)) return nothing
  const asked = isAccount(words)
    ? `/discovery/resources?limit=6&payTo=${words}`
    : `/discovery/search?limit=6&query=${encodeURIComponent(words)}`
  const answer = await ask<ListingsPage>(asked, { signal })
  if (answer.state === "failed") return missing(answer)
  const { items, nearestOnly, resources } = answer.body
  const found = nearestOnly === true ? [] : (items ?? resources ?? [])
  return {
    items: found.map((one) => ({
      kind: "resource",
      title: one.toolName ?? one.serviceName ?? one.resource,
      note: one.resource,
      href: publicPageOf(one)
    }))
  }
}

const readThings = async (words: string, signal: AbortSignal): Promise<Part> => {
  const answer = await ask<{ readonly items: ReadonlyArray<FoundItem> }>(
    `/analytics/v1/find?q=${encodeURIComponent(words.slice(0, wordsMax))}`,
    { signal }
  )
  if (answer.state === "failed") return missing(answer)
  return {
    items: answer.body.items.map(({ id, kind, note, title }) => ({ kind, title, note, href: pageOf(kind, id) }))
  }
}

/** A complete hash, id or account has a page even before a report has it. */
const certain = (words: string, mayRead: boolean): ReadonlyArray<Found> =>
  isTransaction(words) && mayRead
    ? [{ kind: "settlement", title: words, note: "transaction or settlement", href: pageOf("settlement", words) }]
    : isAccount(words)
      ? [
          {
            kind: "account",
            title: words,
            note: "account",
            href: mayRead ? pageOf("account", words) : payeePageOf(words)
          }
        ]
      : []

const find = async (words: string, mayRead: boolean, signal: AbortSignal): Promise<Answer> => {
  const [things, listings] = await Promise.all([
    mayRead ? readThings(words, signal) : nothing,
    readListings(words, signal)
  ])
  const known = new Set(things.items.map(({ href, note }) => (note === "" ? href : note)))
  const all = [...things.items, ...listings.items.filter(({ note }) => !known.has(note))]
  const failed = things.failed ?? listings.failed
  const own = all.some(({ kind }) => kind !== "resource") ? [] : certain(words, mayRead)
  return { words, items: [...own, ...all].slice(0, resultsMax), ...(failed === undefined ? {} : { failed }) }
}

/** The answer for the words. Until it arrives, the answer for earlier words. */
const useFound = (words: string, mayRead: boolean): Answer | undefined => {
  const [found, change] = useState<Answer>()
  useEffect(() => {
    if (words === "") return undefined
    const stop = new AbortController()
    const timer = setTimeout(() => void find(words, mayRead, stop.signal).then(change, () => undefined), pauseMillis)
    return () => {
      clearTimeout(timer)
      stop.abort()
    }
  }, [words, mayRead])
  return words === "" ? undefined : found
}

/** `/` focuses the box, except while another field has the focus. */
const useSlash = (box: { readonly current: HTMLInputElement | null }): void =>
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement
      if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return
      if (target.isContentEditable || /^(input|textarea)$/i.test(target.tagName)) return
      event.preventDefault()
      box.current?.focus()
      box.current?.select()
    }
    addEventListener("keydown", press)
    return () => removeEventListener("keydown", press)
  }, [])

const kindLabels: Readonly<Record<FoundKind, string>> = {
  reason: "Reason",
  settlement: "Settlement",
  account: "Account",
  asset: "Asset",
  resource: "Listing",
  origin: "Origin",
  key: "Key"
}

/** Shortens a hash or an address to its ends; leaves other titles as they are. */
const titleOf = ({ kind, title }: Found): string =>
  kind === "key" ? keyName(title) : /[/ .]/.test(title) ? title : short(title)

const Options = (props: {
  readonly of: Answer
  readonly isCurrent: boolean
  readonly at: number
  readonly go: (item: Found) => void
}): VNode<any> => {
  const { failed, items } = props.of
  const said =
    failed !== undefined
      ? `The search is incomplete. ${failed}`
      : items.length === 0
        ? "Nothing found. Try a whole hash or address, or a part of a URL or name."
        : undefined
  return h(
    "ul",
    {
      class: props.isCurrent ? "found" : "found earlier",
      id: "found",
      role: "listbox",
      "aria-label": "Results",
      "aria-busy": props.isCurrent ? undefined : true
    },
    items.map((item, index) =>
      h(
        "li",
        {
          key: item.href,
          id: `found-${index}`,
          role: "option",
          "aria-selected": index === props.at,
          onMouseDown: (event: Event) => {
            event.preventDefault()
            props.go(item)
          }
        },
        tag("span.kind", kindLabels[item.kind]),
        tag("span.title", written(titleOf(item))),
        tag("span.note", written(item.note))
      )
    ),
    said === undefined
      ? null
      : h("li", { class: "quiet", role: "option", "aria-disabled": true, "aria-selected": false }, said)
  )
}

export const Find = ({ mayRead }: { readonly mayRead: boolean }): VNode<any> => {
  const box = useRef<HTMLInputElement>(null)
  const [{ at, isOpen, typed }, change] = useState({ typed: "", isOpen: false, at: 0 })
  const words = searchedFor(typed)
  const current = useRef(words)
  current.current = words
  const found = useFound(words, mayRead)
  useSlash(box)
  const close = () => change((now) => ({ ...now, isOpen: false }))
  const go = ({ href }: Found): void => {
    change({ typed: "", isOpen: false, at: 0 })
    box.current?.blur()
    location.assign(href)
  }
  /** Opens the chosen result for the current words, even if the shown answer is for earlier words. */
  const choose = async (): Promise<void> => {
    if (words === "") return
    const answer = found?.words === words ? found : await find(words, mayRead, new AbortController().signal)
    const chosen = answer.items[at]
    if (chosen !== undefined && current.current === words) go(chosen)
  }
  const press = (event: KeyboardEvent): void => {
    const count = found?.items.length ?? 0
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0
    if (step !== 0 && count > 0) {
      event.preventDefault()
      change((now) => ({ ...now, isOpen: true, at: (now.at + step + count) % count }))
    } else if (event.key === "Enter") {
      event.preventDefault()
      void choose()
    } else if (event.key === "Escape") close()
  }
  const isShown = isOpen && words !== "" && found !== undefined
  return h(
    "div",
    { class: "find", role: "search", "aria-label": "Everything" },
    h("input", {
      ref: box,
      type: "search",
      role: "combobox",
      "aria-label": "Find",
      "aria-expanded": isShown,
      "aria-controls": isShown ? "found" : undefined,
      "aria-autocomplete": "list",
      "aria-activedescendant": isShown && found.items.length > 0 ? `found-${at}` : undefined,
      placeholder: mayRead ? "Find a hash, account, URL, seller or key" : "Find a resource, seller or account",
      value: typed,
      maxLength: 500,
      spellcheck: false,
      autocomplete: "off",
      onInput: ({ target }: Event) => change({ typed: (target as HTMLInputElement).value, isOpen: true, at: 0 }),
      onFocus: () => change((now) => ({ ...now, isOpen: true })),
      onBlur: close,
      onKeyDown: press
    }),
    h("kbd", { "aria-hidden": true }, "/"),
    isShown ? h(Options, { of: found, isCurrent: found.words === words, at, go }) : null
  )
}
