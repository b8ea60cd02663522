/** What JSON can say; chart options are of this type so that a page can carry them. */
export type Json =
  | string
  | number
  | boolean
  | null
  | Json[]
  | { [key: string]: Json };

/** Options of an ECharts chart, plain data. Units stand as names; see page/formatters.js. */
export type ChartOption = { [part: string]: Json };
