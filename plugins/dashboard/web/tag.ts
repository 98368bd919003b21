// Elements without properties other than their classes, by a selector: `tag("p.quiet", "No payments.")`.
import { type ComponentChildren, h, type VNode } from "preact"

export const tag = (selector: string, ...children: ReadonlyArray<ComponentChildren>): VNode<any> => {
  const [name, ...classes] = selector.split(".")
  return h(name!, classes.length === 0 ? null : { class: classes.join(" ") }, ...children)
}
