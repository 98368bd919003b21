// Where the parts of `tollkeeper start` listen.
import { expect, it } from "@effect/vitest"
import { Option } from "effect"
import { httpsPortOf } from "../../../runtime/commands/start.ts"

it("the ledger's HTTPS port moves with its other port, unless it is chosen by itself", () => {
  const { none, some } = Option
  expect(httpsPortOf(none(), none())).toEqual(none())
  expect(httpsPortOf(none(), some(9_000))).toEqual(some(9_443))
  expect(httpsPortOf(some(8_444), some(9_000))).toEqual(some(8_444))
  expect(httpsPortOf(none(), some(0))).toEqual(some(0))
  expect(httpsPortOf(none(), some(65_200))).toEqual(some(0))
})
