// `--state` of `settlements list` names a state of settlements; everywhere else it is a folder.
import { expect, it } from "@effect/vitest"
import { spellStates } from "../../runtime/operatorWords.ts"

it("takes a settlement state for one, and a folder for a folder", () => {
  const list = ["settlements", "list"]
  expect(spellStates([...list, "--state", "settled", "--json"])).toEqual([...list, "--which", "settled", "--json"])
  expect(spellStates([...list, "--state=refused", "--state", "/srv/t"])).toEqual([
    ...list,
    "--which=refused",
    "--state",
    "/srv/t"
  ])
  expect(spellStates([...list, "--state", "./settled"])).toEqual([...list, "--state", "./settled"])
  expect(spellStates(["settlements", "show", "--state", "settled"])).toEqual([
    "settlements",
    "show",
    "--state",
    "settled"
  ])
})
