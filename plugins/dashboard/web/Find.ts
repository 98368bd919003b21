// The search box above every page: what is typed leads to settlements, accounts, assets, listings, origins and keys, as
// far as the reader may see them; to others it finds public listings. `/` leads into it; arrows and Enter choose.
import { h, type VNode } from "preact"
import { useEffect, useRef, useState } from "preact/hooks"
import { ask } from "./ask.ts"
import { short } from "./format.ts"
import { written } from "./parts.ts"
import { hrefOf, type Kind, pageOf, payeePageOf, publicPageOf } from "./place.ts"

interface Found {
  readonly kind: Kind
  readonly title: string
  readonly note: string
  readonly href: string
}

interface Item {
  readonly kind: Kind
  readonly id: string
  readonly title: string
  readonly note: string
}

interface Listing {
  readonly resource: string
  readonly type: string
  readonly toolName?: string
  readonly serviceName?: string
}

const pauseMillis = 150
const resultsMax = 12
const isAccount = /^[GC][A-Z2-7]{55}$/
const isTransaction = /^[0-9a-fA-F]{64}$|^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$/

const readListings = async (words: string, signal: AbortSignal): Promise<ReadonlyArray<Found>> => {
  const asked = isAccount.test(words)
    ? `/discovery/resources?limit=6&payTo=${words}`
    : `/discovery/search?limit=6&query=${encodeURIComponent(words)}`
  const answer = await ask<{ readonly items?: ReadonlyArray<Listing>; readonly resources?: ReadonlyArray<Listing> }>(
    asked,
    { signal }
  )
  if (answer.state === "failed") return []
  return (answer.body.items ?? answer.body.resources ?? []).map((one) => ({
    kind: "resource",
    title: one.toolName ?? one.serviceName ?? one.resource,
    note: one.resource,
    href: publicPageOf(one)
  }))
}

const readThings = async (words: string, signal: AbortSignal): Promise<ReadonlyArray<Found>> => {
  const answer = await ask<{ readonly items: ReadonlyArray<Item> }>(
    `/analytics/v1/find?q=${encodeURIComponent(words)}`,
    { signal }
  )
  if (answer.state === "failed") return []
  return answer.body.items.map(({ id, kind, note, title }) => ({ kind, title, note, href: pageOf(kind, id) }))
}

/** A whole hash or id has a page even before any report knows it; so has an account. */
const certain = (words: string, mayRead: boolean): ReadonlyArray<Found> =>
  isTransaction.test(words) && mayRead
    ? [{ kind: "settlement", title: words, note: "transaction or settlement", href: pageOf("settlement", words) }]
    : isAccount.test(words) && !mayRead
      ? [{ kind: "account", title: words, note: "recipient", href: payeePageOf(words) }]
      : []

const find = async (words: string, mayRead: boolean, signal: AbortSignal): Promise<ReadonlyArray<Found>> => {
  const [things, listings] = await Promise.all([mayRead ? readThings(words, signal) : [], readListings(words, signal)])
  const known = new Set(things.map(({ href, note }) => (note === "" ? href : note)))
  const all = [...things, ...listings.filter(({ note }) => !known.has(note))]
  return all.length === 0 ? certain(words, mayRead) : all.slice(0, resultsMax)
}

const useFound = (words: string, mayRead: boolean): ReadonlyArray<Found> | undefined => {
  const [found, change] = useState<{ readonly words: string; readonly items: ReadonlyArray<Found> }>()
  useEffect(() => {
    if (words === "") return undefined
    const stop = new AbortController()
    const timer = setTimeout(
      () =>
        void find(words, mayRead, stop.signal)
          .then((items) => change({ words, items }))
          .catch(() => undefined),
      pauseMillis
    )
    return () => {
      clearTimeout(timer)
      stop.abort()
    }
  }, [words, mayRead])
  return words === "" || found === undefined ? undefined : found.words === words ? found.items : found.items
}

/** `/` leads into the box, except where something is written. */
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

const kindLabels: Readonly<Record<Kind, string>> = {
  settlement: "Settlement",
  account: "Account",
  asset: "Asset",
  resource: "Listing",
  origin: "Origin",
  key: "Key"
}

const Options = (props: {
  readonly items: ReadonlyArray<Found>
  readonly at: number
  readonly go: (item: Found) => void
}): VNode<any> =>
  h(
    "ul",
    { class: "found", id: "found", role: "listbox", "aria-label": "Results" },
    props.items.length === 0
      ? h(
          "li",
          { class: "quiet", role: "option", "aria-disabled": true, "aria-selected": false },
          "Nothing found. Try a whole hash or address, or a part of a URL or name."
        )
      : props.items.map((item, index) =>
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
            h("span", { class: "kind" }, kindLabels[item.kind]),
            h(
              "span",
              { class: "title" },
              written(
                short(item.title).length < item.title.length && !/[/ .]/.test(item.title)
                  ? short(item.title)
                  : item.title
              )
            ),
            h("span", { class: "note" }, written(item.note))
          )
        )
  )

export const Find = ({ mayRead }: { readonly mayRead: boolean }): VNode<any> => {
  const box = useRef<HTMLInputElement>(null)
  const [{ at, isOpen, words }, change] = useState({ words: "", isOpen: false, at: 0 })
  const items = useFound(words, mayRead)
  useSlash(box)
  const close = () => change((now) => ({ ...now, isOpen: false }))
  const go = ({ href }: Found): void => {
    change({ words: "", isOpen: false, at: 0 })
    box.current?.blur()
    location.assign(href)
  }
  const press = (event: KeyboardEvent): void => {
    const count = items?.length ?? 0
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0
    if (step !== 0 && count > 0) {
      event.preventDefault()
      change((now) => ({ ...now, isOpen: true, at: (now.at + step + count) % count }))
    } else if (event.key === "Enter") {
      event.preventDefault()
      const chosen = items?.[at]
      if (chosen !== undefined) go(chosen)
      else if (mayRead && isTransaction.test(words)) location.assign(pageOf("settlement", words))
    } else if (event.key === "Escape") close()
  }
  const isShown = isOpen && words !== "" && items !== undefined
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
      "aria-activedescendant": isShown && items.length > 0 ? `found-${at}` : undefined,
      placeholder: mayRead ? "Find a hash, account, URL, seller or key" : "Find a resource, seller or account",
      value: words,
      maxLength: 200,
      spellcheck: false,
      autocomplete: "off",
      onInput: ({ target }: Event) => change({ words: (target as HTMLInputElement).value.trim(), isOpen: true, at: 0 }),
      onFocus: () => change((now) => ({ ...now, isOpen: true })),
      onBlur: close,
      onKeyDown: press
    }),
    h("kbd", { "aria-hidden": true }, "/"),
    isShown ? h(Options, { items, at, go }) : null
  )
}

/** Where settlements with a filter are listed. */
export const listOf = (query: Readonly<Record<string, string | undefined>>): string => hrefOf("settlements", "", query)
