// Public facts of this facilitator, requested once per page: its assets, plugins and the explorer of its network.
import { useEffect, useState } from "preact/hooks"
import { ask } from "./ask.ts"
import type { AssetShown } from "./prices.ts"

export interface Facts {
  readonly assets: ReadonlyArray<AssetShown>
  readonly schemes: ReadonlyArray<string>
  readonly plugins: ReadonlyArray<string>
  readonly explorer: string | null
}

let asked: Promise<Facts | undefined> | undefined
let known: Facts | undefined

const read = async (): Promise<Facts | undefined> => {
  const answer = await ask<Facts>("/dashboard/v1/about")
  known = answer.state === "ready" ? answer.body : undefined
  if (known === undefined) asked = undefined
  return known
}

/** Undefined until the response arrives. */
export const useFacts = (): Facts | undefined => {
  const [facts, change] = useState(known)
  useEffect(() => {
    let isOver = false
    asked ??= read()
    void asked.then((found) => void (isOver || change(found)))
    return () => void (isOver = true)
  }, [])
  return facts
}
