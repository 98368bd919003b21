// Entities with a page: transactions, accounts, contracts, resources, origins and keys. Each is a link to its page,
// with a button that copies the full id, and a link to the network's explorer if there is one.
import { h, type VNode } from "preact"
import { useEffect, useState } from "preact/hooks"
import { useFacts } from "./about.ts"
import { short } from "./format.ts"
import { written } from "./parts.ts"
import { type Kind, pageOf } from "./place.ts"
import { tag } from "./tag.ts"

const copiedMillis = 1_500

const paths = {
  copy: "M5 5V2.5h8.5V11H11M2.5 5H11v8.5H2.5z",
  done: "M3 8.5l3.2 3.2L13 5",
  out: "M6.5 3H3v10h10V9.5M9 3h4v4M13 3L7.5 8.5"
} as const

const Icon = ({ name }: { readonly name: keyof typeof paths }): VNode<any> =>
  h("svg", { viewBox: "0 0 16 16", class: "icon", "aria-hidden": true }, h("path", { d: paths[name] }))

const nouns: Readonly<Record<Kind, string>> = {
  settlement: "transaction hash",
  account: "address",
  asset: "contract",
  resource: "URL",
  origin: "origin",
  key: "key label"
}

/** A button that copies a text and shows "Copied" for a moment. */
export const Copy = (props: {
  readonly text: string
  readonly noun: string
  readonly inList?: boolean
}): VNode<any> => {
  const [isCopied, report] = useState(false)
  useEffect(() => {
    if (!isCopied) return undefined
    const timer = setTimeout(() => report(false), copiedMillis)
    return () => clearTimeout(timer)
  }, [isCopied])
  const label = isCopied ? "Copied" : `Copy ${props.noun}`
  return h(
    "button",
    {
      type: "button",
      class: "mini",
      title: label,
      "aria-label": label,
      tabIndex: props.inList === true ? -1 : 0,
      onClick: () => void navigator.clipboard?.writeText(props.text).then(() => report(true))
    },
    h(Icon, { name: isCopied ? "done" : "copy" })
  )
}

const explorerPath: Readonly<Partial<Record<Kind, string>>> = {
  settlement: "tx",
  account: "account",
  asset: "contract"
}

const Explorer = (props: { readonly kind: Kind; readonly id: string; readonly inList: boolean }): VNode<any> | null => {
  const explorer = useFacts()?.explorer
  const path = props.kind === "account" && props.id.startsWith("C") ? "contract" : explorerPath[props.kind]
  if (explorer == null || path === undefined || props.id.startsWith("p_")) return null
  return h(
    "a",
    {
      class: "mini",
      href: `${explorer}/${path}/${props.id}`,
      rel: "noreferrer",
      title: "Open in an explorer",
      "aria-label": "Open in an explorer",
      tabIndex: props.inList ? -1 : 0
    },
    h(Icon, { name: "out" })
  )
}

/** Readable name of a caller: a key by its label, a caller without a key by its address. */
export const keyName = (principal: string): string => principal.replace(/^key:/, "").replace(/^ip:/, "Address ")

/** Copies the full text in place of the selected ends. */
const copyWhole = (text: string) => (event: ClipboardEvent) => {
  event.clipboardData?.setData("text/plain", text)
  event.preventDefault()
}

/**
 * With `whole`, shows the full id, as on its own page. Otherwise shortens it and takes its buttons out of the tab
 * order.
 */
export const Thing = (props: {
  readonly kind: Kind
  readonly id: string
  readonly text?: string
  /** Link target instead of the operator's page. Null for no link, if the reader has no page for it. */
  readonly href?: string | null
  readonly whole?: boolean
  /** Text that the button copies instead of the id. */
  readonly copies?: string
}): VNode<any> => {
  const { href, id, kind, text, whole } = props
  const isCode = kind === "settlement" || kind === "account" || (kind === "asset" && text === undefined)
  const isPlain = whole === true || href === null
  const shown = isCode
    ? h("code", whole === true ? null : { title: id, onCopy: copyWhole(id) }, text ?? (whole === true ? id : short(id)))
    : written(text ?? (kind === "key" ? keyName(id) : id))
  return h(
    "span",
    { class: whole === true ? "thing whole" : "thing" },
    isPlain ? shown : h("a", { href: href ?? pageOf(kind, id), title: props.copies ?? id }, shown),
    tag(
      "span.tools",
      h(Copy, { text: props.copies ?? id, noun: nouns[kind], inList: whole !== true && href !== null }),
      h(Explorer, { kind, id, inList: whole !== true && href !== null })
    )
  )
}
